#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration behind demo.sh: the exchange of plain.clab.yml and that of ixp.clab.yml under the same
workload, what peerlan shows, and what each member received per second, before and after."""
import argparse
import concurrent.futures
import signal
import subprocess
import sys
import textwrap
import time

import labkit
import netlab
from labkit import MEMBERS, ip4, ip6, wait_for

SECONDS = 10
SOURCE = 1  # the member whose port the workload comes in at
# What it sends: row of the last table, arguments of peerlan-frames, frames a second. The sweeps go over
# used and unused addresses.
WORKLOAD = [
    ("ARP requests", ["sweep", "eth1", "--first", ip4(2), "--count", 253], 100),
    ("ND solicitations", ["sweep", "eth1", "--first", ip6(2), "--count", 253], 100),
    ("gratuitous ARP", ["send", "gratuitous-arp", "eth1"], 10),
    ("unsolicited NA", ["send", "unsolicited-na", "eth1"], 10),
    ("STP", ["send", "stp", "eth1"], 5),
    ("LLDP", ["send", "lldp", "eth1"], 5),
    ("router adv. (RA)", ["send", "ra", "eth1"], 5),
    ("DHCP", ["send", "dhcp", "eth1"], 5),
    ("other broadcast", ["send", "broadcast", "eth1"], 5000),
]
SENT = {title: rate for title, _, rate in WORKLOAD}
CLASSES = [  # rows of the last table: title, classes of peerlan-frames
    ("ARP requests", ["arp-request"]),
    ("gratuitous ARP", ["gratuitous-arp"]),
    ("ND solicitations", ["ns"]),
    ("unsolicited NA", ["unsolicited-na"]),
    ("STP", ["stp"]),
    ("LLDP", ["lldp"]),
    ("router adv. (RA)", ["ra"]),
    ("DHCP", ["dhcp"]),
    ("other broadcast", ["other-broadcast"]),
    ("other multicast", ["other-multicast", "mld", "igmp", "rs", "ospf", "cdp", "lacp"]),
    ("unknown unicast", ["unknown-unicast"]),
]


def colour(code, text):
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() else text


def heading(text):
    print(f"\n{colour('1;36', '=== ' + text + ' ' + '=' * max(0, 96 - len(text)))}", flush=True)


def say(text):
    print(textwrap.fill(text, 100), flush=True)


def table(header, rows, above=()):
    """Columns as wide as they need; the first one to the left, the others to the right. `above`: a line
    over the header, of texts and (text, columns it spans)."""
    lines = [[str(c) for c in line] for line in [header, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    at, over = 0, []
    for cell in above:
        text, span = cell if isinstance(cell, tuple) else (cell, 1)
        over.append(text.ljust(sum(widths[at:at + span]) + 2 * (span - 1)))
        at += span
    if over:
        print(colour("1", "  ".join(over)))
    for number, line in enumerate(lines):
        cells = [line[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(line[1:], widths[1:])]
        text = "  ".join(cells)
        print(colour("1", text) if number == 0 else text)
    sys.stdout.flush()


def ping_matrix(lab, seconds=1.0):
    """Every member to every other, both families. True: nothing was lost."""
    def one(n):
        others = [a for m in MEMBERS if m != n for a in (ip4(m), ip6(m))]
        return n, lab.frames(f"m{n}", "probe", *others, "--seconds", seconds, "--interval", 20000, check=False)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        documents = dict(pool.map(one, MEMBERS))
    good = True
    for family, address in (("IPv4", ip4), ("IPv6", ip6)):
        rows = []
        for n in MEMBERS:
            results = {t["target"]: t for t in documents[n]["targets"]}
            row = [f"m{n}"]
            for m in MEMBERS:
                t = results.get(address(m))
                if t is None:
                    row.append("-")
                elif t["lost"]:
                    row.append(f"{t['lost']}/{t['sent']} lost")
                    good = False
                else:
                    row.append(f"{t['round_trip_ms']:.2f} ms")
            rows.append(row)
        table([f"{family} from / to", *[f"m{m}" for m in MEMBERS]], rows)
        print()
    return good


def workload(lab):
    """Frames per second that each member received, by class."""
    with lab.counting(core=False) as counts:
        children = [lab.start(f"m{SOURCE}", "peerlan-frames", *arguments, "--rate", rate, "--seconds", SECONDS)
                    for _, arguments, rate in WORKLOAD]
        for child in children:
            out, err = child.communicate(timeout=120)
            if child.returncode:
                raise netlab.LabError(f"{child.args}: {out}{err}")
    return {n: {title: sum(counts[f"m{n}"]["frames"].get(c, 0) for c in classes) / SECONDS
                for title, classes in CLASSES} for n in MEMBERS}


def show(lab, node, *argv, lines=None):
    command = " ".join(argv)
    print(colour("1;33", f"\n{node}# {command}"), flush=True)
    out = lab.run(node, *argv, check=False)
    text = (out.stdout + out.stderr).rstrip().splitlines()
    print("\n".join(text[:lines]))
    if lines and len(text) > lines:
        print(f"... and {len(text) - lines} more lines")
    sys.stdout.flush()


def show_exchange(lab):
    heading("BGP sessions")
    show(lab, "rs1", "peerlan", "show", "neighbors")
    heading("The node at a glance")
    show(lab, "pe1", "peerlan", "show", "summary")
    heading("EVPN routes, as the route reflector has them")
    show(lab, "rs1", "peerlan", "show", "routes", lines=40)
    heading("MAC addresses")
    show(lab, "pe1", "peerlan", "show", "macs")
    heading("Bindings of the proxy ARP/ND responder")
    show(lab, "pe1", "peerlan", "show", "bindings")
    heading("Member ports")
    show(lab, "pe1", "peerlan", "show", "ports")
    heading("The same fabric as FRRouting on pe3 sees it")
    show(lab, "pe3", "vtysh", "-c", "show bgp l2vpn evpn", lines=48)
    show(lab, "pe3", "vtysh", "-c", "show evpn mac vni all")


def number(value):
    return "." if value == 0 else f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def before_after(before, after):
    heading(f"What each member received per second, before and after (m{SOURCE} sends for {SECONDS} s)")
    others = [n for n in MEMBERS if n != SOURCE]
    rows = []
    for title, classes in [*CLASSES, ("all of these", None)]:
        row = [title, number(SENT.get(title, 0) if classes else sum(SENT.values()))]
        for measured in (before, after):
            row.append("|")
            for n in others:
                row.append(number(measured[n][title] if classes else sum(measured[n].values())))
        rows.append(row)
    names = [f"m{n}" for n in others]
    table(["frames a second", f"m{SOURCE} sends", "|", *names, "|", *names], rows,
                   above=["", "", "|", ("before: plain VXLAN", 5), "|", ("after: peerlan", 5)])
    total = [sum(sum(m[n].values()) for n in others) / len(others) for m in (before, after)]
    print()
    say(f"A member received {total[0]:.0f} such frames a second before, {total[1]:.1f} after.")
    return total


def run(keep):
    heading("Before: the peering LAN as plain VXLAN with flooding and learning")
    plain = labkit.Lab("plain", "plain.clab.yml", shared=True)
    plain.netlab("down")
    plain.up()
    say("Six members on three PEs, static head-end replication, no control plane.")
    print()
    reachable = ping_matrix(plain)
    say(f"m{SOURCE} now sends the workload for {SECONDS} s ...")
    before = workload(plain)
    plain.down()

    heading("After: the same exchange with peerlan")
    lab = labkit.Lab("ixp", "ixp.clab.yml", shared=True)
    lab.netlab("down")
    began = time.monotonic()
    lab.up()
    lab.wait_converged()
    wait_for("GoBGP to have routes", lambda: "macadv" in lab.run(
        "monitor", "gobgp", "global", "rib", "-a", "evpn", check=False).stdout)
    say(f"Up and converged in {time.monotonic() - began:.1f} s: rs1 reflects routes between pe1 and pe2 (peerland), "
        "pe3 (FRRouting) and a monitor (GoBGP).")
    show_exchange(lab)
    heading("Every member reaches every other")
    reachable = ping_matrix(lab) and reachable
    heading("The workload again")
    say(f"m{SOURCE} sends the same frames for {SECONDS} s ...")
    after = workload(lab)
    heading("Known addresses were answered at the port, nothing was dropped without a name")
    show(lab, "pe1", "peerlan", "show", "ports")
    show(lab, "pe1", "peerlan", "show", "drops")
    total = before_after(before, after)

    good = reachable and total[1] < total[0] / 10
    if keep:
        lab.keep()
        heading("The exchange is still up")
        print(textwrap.dedent(f"""\
            lab/netlab.py exec lab/ixp.clab.yml pe1 -- peerlan show summary      also: neighbors routes macs bindings ports drops
            lab/netlab.py exec lab/ixp.clab.yml pe3 -- vtysh                     FRRouting
            lab/netlab.py exec lab/ixp.clab.yml m1 -- ping {ip6(5)}          m1 to m6 are members
            lab/netlab.py exec lab/ixp.clab.yml m2 -- peerlan-frames count eth1  what arrives, by class, until Ctrl-C
            lab/netlab.py down lab/ixp.clab.yml                                  takes it down"""))
    else:
        lab.down()
    if not good:
        print("\nNot as it should be: " + ("the reduction is missing" if reachable else "pings were lost"))
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the exchange up")
    args = parser.parse_args()
    def interrupted(*_):
        raise KeyboardInterrupt
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, interrupted)
    try:
        return run(args.keep)
    except KeyboardInterrupt:
        print("\ninterrupted, cleaning up", flush=True)
        return 130
    except (netlab.LabError, AssertionError, subprocess.TimeoutExpired) as e:
        print(f"\nfailed: {e}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
