#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians of run.sh's JSON files as the tables of docs/performance.md.

report.py FOLDER                 to standard output
report.py FOLDER --write FILE    between the marks in FILE
"""
import collections
import datetime
import glob
import json
import os
import platform
import re
import statistics
import sys

OURS = "peerland"
BEGIN, END = "<!-- bench/run.sh writes from here -->", "<!-- to here -->"
ORDER = [OURS, "frr", "bird", "gobgp"]


def phase(run, name):
    found = [p for p in run["phases"] if p["name"] == name and p["ok"]]
    return found[0] if found else None


def median(runs, name, value):
    values = [value(run, p) for run in runs if (p := phase(run, name)) is not None]
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def rate(runs, name):
    return median(runs, name, lambda _, p: p["routes"] / p["secs"])


def field(name):
    return lambda _, p: p.get(name)


def growth(run, p):
    return (p["rss_after_kb"] - run["rss_established_kb"]) * 1024 / p["routes"]


def left(run, p):
    return 100 * p["rss_after_kb"] / run["rss_peak_kb"]


def left_of_growth(run, p):
    """The process itself, without a route, not counted."""
    base = run["rss_established_kb"]
    grown = run["rss_peak_kb"] - base
    return max(0, 100 * (p["rss_after_kb"] - base) / grown) if grown > 0 else None


# heading, median of the runs, text, and whether more is better (None: not compared)
COLUMNS = [
    ("announce, routes/s", lambda r: rate(r, "announce"), "{:,.0f}", True),
    ("withdraw, routes/s", lambda r: rate(r, "withdraw"), "{:,.0f}", True),
    ("re-announce, routes/s", lambda r: rate(r, "reannounce"), "{:,.0f}", True),
    ("CPU µs a route", lambda r: median(r, "announce", lambda _, p: 1e6 * p["cpu_s"] / p["routes"]),
     "{:.2f}", False),
    ("RSS octets a route", lambda r: median(r, "announce", growth), "{:.0f}", False),
    ("RSS after withdraw, % of peak", lambda r: median(r, "withdraw", left), "{:.0f}", None),
    ("… % of its growth", lambda r: median(r, "withdraw", left_of_growth), "{:.0f}", None),
    ("announce p50 µs", lambda r: median(r, "latency", field("all_p50_us")), "{:,.0f}", False),
    ("p99 µs", lambda r: median(r, "latency", field("all_p99_us")), "{:,.0f}", False),
    ("session drop s", lambda r: median(r, "drop", field("secs")), "{:.3f}", False),
    ("late joiner s", lambda r: median(r, "late", field("secs")), "{:.3f}", False),
]
UNIQUE = COLUMNS[:7]


def load(folder):
    results = collections.defaultdict(list)
    for name in sorted(glob.glob(os.path.join(folder, "*.json"))):
        try:
            with open(name, encoding="utf-8") as file:
                run = json.load(file)
        except ValueError:
            print("unreadable:", name, file=sys.stderr)
            continue
        kind = os.path.basename(name).split("-")[0]
        key = (kind, run["senders"], run["receivers"], run["type2_total"])
        results[key].append(run)
    return results


def table(runs, columns):
    by_peer = collections.defaultdict(list)
    for run in runs:
        by_peer[run["label"]].append(run)
    peers = sorted(by_peer, key=lambda p: (ORDER.index(p) if p in ORDER else len(ORDER), p))
    values = {p: [column[1](by_peer[p]) for column in columns] for p in peers}
    peers = [p for p in peers if any(v is not None for v in values[p])]
    if not peers:
        return
    yield "| | " + " | ".join(column[0] for column in columns) + " | runs |"
    yield "|:--|" + "--:|" * (len(columns) + 1)
    for p in peers:
        cells = [c[2].format(v) if v is not None else "–" for c, v in zip(columns, values[p])]
        yield f"| {p} | " + " | ".join(cells) + f" | {len(by_peer[p])} |"
    if OURS not in peers or len(peers) == 1:
        return
    ratios = []
    for i, column in enumerate(columns):
        others = [values[p][i] for p in peers if p != OURS and values[p][i]]
        ours = values[OURS][i]
        if column[3] is None or not others or not ours:
            ratios.append("")
        elif column[3]:
            ratios.append(f"{ours / max(others):.1f} x")
        else:
            ratios.append(f"{ours / min(others):.2f} x")
    yield f"| {OURS} to the best other | " + " | ".join(ratios) + " | |"


def machine():
    cpu = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) // (1024 * 1024)
    kernel = ".".join(re.match(r"[0-9.]+", platform.release()).group().split(".")[:2])
    return f"{os.cpu_count()} cores ({cpu}), {memory} GiB, Linux {kernel}"


def report(folder):
    yield f"Measured on {datetime.date.today():%d %B %Y}: {machine()}."
    yield ""
    results = load(folder)
    measured = {run["label"] for runs in results.values() for run in runs}
    with open(os.path.join(folder, "versions.txt"), encoding="utf-8") as file:
        for line in file:
            peer, tab, version = line.rstrip("\n").partition("\t")
            if tab and peer not in measured:
                continue
            yield f"- `{peer}`: {version}" if tab else f"- {peer}"
    for kind, senders, receivers, routes in sorted(results):
        columns = UNIQUE if kind == "unique" else COLUMNS
        lines = list(table(results[(kind, senders, receivers, routes)], columns))
        if not lines:
            continue
        yield ""
        what = ", an attribute set for each" if kind == "unique" else ""
        yield f"### {routes:,} routes{what}: {senders} senders, {receivers} receivers"
        yield ""
        yield from lines
    wrong = [
        f"{run['label']} ({name})"
        for runs in results.values() for run in runs for p in run["phases"]
        for name in ("foreign", "bad_nexthop", "bad_label", "bad_attr") if p.get(name)
    ]
    yield ""
    yield "Routes that came back changed: " + (", ".join(sorted(set(wrong))) or "none.")


def main():
    folder = sys.argv[1]
    text = "\n".join(report(folder)) + "\n"
    if "--write" not in sys.argv:
        sys.stdout.write(text)
        return
    target = sys.argv[sys.argv.index("--write") + 1]
    with open(target, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    after = rest.partition(END)[2]
    with open(target, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{text}{END}{after}")


main()
