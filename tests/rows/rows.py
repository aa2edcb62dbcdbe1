#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the tests that the rows of requirements name and says of each row whether it passes, fails or has nothing
that shows it (`not done`). Called by tests/rows.sh.
  rows.py AREA [--markdown] [--labs FILE] [--check]
--markdown: writes docs/requirements-AREA.md too. --labs: takes the results of lab tests from the output of
tests/lab/run.py instead of running them. --check: runs nothing, tells which named tests don't exist."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PEERLAN_BUILD", ROOT / "build" / "release"))
TITLES = {"bum": "BUM policy and port security: requirements and the tests that show them",
          "bgp": "BGP EVPN: requirements and the tests that show them",
          "pe": "A PE that never loses what is true: requirements and the tests that show them",
          "proxyarp": "Proxy ARP/ND: requirements and the tests that show them"}
# Tests of these suites run once for each of what they are instantiated with.
INSTANCES = {"Rows": ("Pcap/Rows", "Ebpf/Rows", "Xdp/Rows")}


def instances(test):
    suite, _, name = test.partition(".")
    return [f"{instance}.{name}/0" for instance in INSTANCES[suite]] if suite in INSTANCES else [test]


class Row:
    def __init__(self, fields):
        self.number, self.text, self.source, self.need, tests = fields
        self.named = [] if tests == "-" else tests.split()
        self.tests = [t for named in self.named for t in instances(named)]

    def result(self, results):
        """(pass, fail or not done, why)"""
        if not self.tests:
            return "not done", "no test"
        missing = [t for t in self.tests if t not in results]
        failed = [t for t in self.tests if results.get(t) == "fail"]
        if failed:
            return "fail", " ".join(failed)
        skipped = [t for t in self.tests if results.get(t) == "skip"]
        if missing or skipped:
            return "not done", "not run: " + " ".join(missing) if missing else "skipped: " + " ".join(skipped)
        return "pass", ""


def read_rows(area):
    """[heading or Row]"""
    out = []
    for line in (ROOT / "tests" / "rows" / f"{area}.tsv").read_text().splitlines():
        if line.startswith("= "):
            out.append(line[2:])
        elif line and not line.startswith("#"):
            fields = line.split("\t")
            assert len(fields) == 5, f"not five columns: {line}"
            out.append(Row(fields))
    numbers = [r.number for r in out if isinstance(r, Row)]
    assert len(numbers) == len(set(numbers)), "a number twice"
    return out


def run(argv, **more):
    return subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


def programs():
    """[(name of CTest, command, environment)]"""
    r = run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"])
    assert r.returncode == 0, r.stdout
    for test in json.loads(r.stdout)["tests"]:
        if "command" in test:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
            yield test["name"], test["command"], {**os.environ, **environment}


def listed(command):
    """Names of a GoogleTest program."""
    suite, names = "", set()
    for line in run([*command, "--gtest_list_tests"]).stdout.splitlines():
        line = line.split("#")[0].rstrip()
        if line.endswith(".") and not line.startswith(" "):
            suite = line
        elif line.startswith("  "):
            names.add(suite + line.strip())
    return names


def is_google_test(command):
    """What peerlan_test() of cmake/peerlan.cmake registers: a program without arguments, if it is built."""
    return len(command) == 1 and os.access(command[0], os.X_OK)


def run_google_test(command, environment, names):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        r = run([*command, "--gtest_filter=" + ":".join(sorted(names)), f"--gtest_output=json:{file.name}"],
                env=environment)
        try:
            document = json.loads(pathlib.Path(file.name).read_text())
        except ValueError:  # it crashed
            print(r.stdout[-3000:], file=sys.stderr)
            return {name: "fail" for name in names}
    out = {}
    for suite in document["testsuites"]:
        for test in suite["testsuite"]:
            skipped = test.get("result") == "SKIPPED"
            out[f"{suite['name']}.{test['name']}"] = "fail" if test.get("failures") else "skip" if skipped else "pass"
    return out


def unit_tests(wanted, check):
    results = {}
    for name, command, environment in programs():
        if f"ctest:{name}" in wanted:
            returned = 0 if check else run(command, env=environment).returncode
            results[f"ctest:{name}"] = {0: "pass", 77: "skip"}.get(returned, "fail")
        if is_google_test(command):
            names = listed(command) & wanted
            if names:
                results |= {n: "pass" for n in names} if check else run_google_test(command, environment, names)
    return results


def lab_results(text):
    results = {}
    for line in text.splitlines():
        found = re.match(r"(PASS|FAIL|SKIP) (test_\w+\.\w+\.\w+)", line)
        if found:
            word = {"PASS": "pass", "FAIL": "fail", "SKIP": "skip"}[found[1]]
            # A failed part of a test counts for the whole, which then has a line of its own.
            results[found[2]] = "fail" if results.get(found[2]) == "fail" else word
        found = re.match(r"(FAIL|SKIP) setUpClass \((test_\w+\.\w+)\)", line)
        if found:
            results[found[2] + ".*"] = "fail" if found[1] == "FAIL" else "skip"
    return results


def lab_tests(wanted, log):
    if not wanted:
        return {}
    if log is None:
        log = run(["/usr/bin/python3", ROOT / "tests" / "lab" / "run.py", *sorted(wanted)],
                  env={**os.environ, "PEERLAN_BUILD": str(BUILD)}).stdout
    else:
        log = pathlib.Path(log).read_text(errors="replace")
    found = lab_results(log)
    results = {name: found.get(name) or found.get(name.rsplit(".", 1)[0] + ".*") for name in wanted}
    return {name: result for name, result in results.items() if result}


def lab_names():
    """All of tests/lab, from the text: importing needs what the labs need."""
    names, bases = set(), {}
    for path in (ROOT / "tests" / "lab").glob("test_*.py"):
        current = None
        for line in path.read_text().splitlines():
            found = re.match(r"class (\w+)\(?([^)]*)", line)
            if found:
                current, inherited = found[1], [b.strip() for b in found[2].split(",")]
                bases[(path.stem, current)] = [b for b in inherited if (path.stem, b) in bases]
                for base in bases[(path.stem, current)]:
                    names |= {n.replace(f".{base}.", f".{current}.") for n in names if n.startswith(f"{path.stem}.{base}.")}
            found = re.match(r"    def (test_\w+)\(", line)
            if found:
                names.add(f"{path.stem}.{current}.{found[1]}")
    return names


def markdown(area, rows, results, last):
    out = [f"# {TITLES.get(area, area)}", "",
           f"Made by `tests/rows.sh {area} --markdown`. A row passes when all its tests do; one that no test shows is not",
           "done, never left out. PE: the daemon at a member's edge, RR: as route reflector or server; M must, S should.", ""]
    for row in rows:
        if not isinstance(row, Row):
            out += ["" if out[-1] else None, f"## {row}", "", "| row | requirement | asked by | for | result | tests |",
                    "|---|---|---|---|---|---|"]
            continue
        tests = " ".join(f"`{t}`" for t in row.named) or "none"
        out.append(f"| {row.number} | {row.text} | {row.source} | {row.need} | {row.result(results)[0]} | {tests} |")
    out += ["", f"`{last}`", ""]
    (ROOT / "docs" / f"requirements-{area}.md").write_text("\n".join(line for line in out if line is not None))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("area")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--labs")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows = read_rows(options.area)
    wanted = {t for row in rows if isinstance(row, Row) for t in row.tests}
    labs = {t for t in wanted if t.startswith("test_")}
    results = unit_tests(wanted - labs, options.check)
    if options.check:
        missing = wanted - results.keys() - lab_names()
        print("\n".join(f"no such test: {t}" for t in sorted(missing)) or f"all {len(wanted)} named tests exist")
        return 1 if missing else 0
    results |= lab_tests(labs, options.labs)
    counts = {"pass": 0, "fail": 0, "not done": 0}
    for row in rows:
        if not isinstance(row, Row):
            print(f"\n{row}")
            continue
        result, why = row.result(results)
        counts[result] += 1
        print(f"{result:8} {row.number:>5}  {row.text} [{row.source}; {row.need}]: {' '.join(row.named) or 'no test'}"
              + (f" ({why})" if why and row.tests else ""))
    last = f"rows: {counts['pass']} pass, {counts['fail']} fail, {counts['not done']} not done"
    if options.markdown:
        markdown(options.area, rows, results, last)
    print(f"\n{last}")
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
