# SPDX-License-Identifier: GPL-2.0-or-later
"""See failover.sh. Each case runs in the exchange of lab/ixp.clab.yml: m1 behind pe1 (peerland) pings m3 behind pe2
(peerland) and m5 behind pe3 (FRRouting), and both ping back, a packet a millisecond each."""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(ROOT / "lab")]
import labkit  # noqa: E402
import test_flows  # noqa: E402
import test_repair  # noqa: E402
import two_reflectors  # noqa: E402
from labkit import wait_for  # noqa: E402

BUILD = labkit.BUILD
MACS = 100_000
DOCUMENT = ROOT / "docs" / "failover.md"
ONE_OF_TWO = ("kill -9 of one of two reflectors, started again", "restart of the other of them (SIGTERM)")
BEGIN = "<!-- bench/failover.sh writes from here -->"


def log(*words):
    print(*words, file=sys.stderr, flush=True)


class Cases:
    def __init__(self, lab, wanted=""):
        self.lab = lab
        self.wanted = wanted  # part of the names of those that are run
        self.rows = []

    def measure(self, name, action, sources=(1, 3, 5), targets=(1, 3, 5), after=1.0):
        if self.wanted in name:
            self.measured(name, action, sources, targets, after)

    def measured(self, name, action, sources, targets, after):
        """Runs the action while these ping each other; a row for peerland and one for FRRouting as the other PE."""
        self.lab.wait_converged(120)
        with self.lab.probing(sources, targets=targets) as results:
            time.sleep(0.5)
            began = time.monotonic()
            action()
            took = time.monotonic() - began
            time.sleep(after)
        for other, label in ((3, "peerland"), (5, "FRRouting")):
            if other not in targets:
                continue
            sent = lost = 0
            gap = 0.0
            for source, target in ((1, other), (other, 1)):
                for t in results.get(f"m{source}", {}).get("targets", []):
                    if t["target"] in (labkit.ip4(target), labkit.ip6(target)):
                        sent, lost = sent + t["sent"], lost + t["lost"]
                        gap = max(gap, t["longest_gap_ms"] if t["lost"] else 0.0)
            self.rows.append((name, label, sent, lost, gap, took))
            log(f"{name:45} {label:10} sent {sent:6} lost {lost:5} gap {gap:7.1f} ms  action {took:5.2f} s")

    def start(self, node, other=False):
        self.lab.start_peerland(node, other)
        wait_for(f"{node} in service", lambda: self.lab.in_service(node), 30)

    def restart(self, node, number, pause=1.0, other=False):
        self.lab.kill(node, number)
        time.sleep(pause)
        self.start(node, other)

    def crash_loop(self):
        for _ in range(5):
            self.lab.kill("pe1", signal.SIGKILL)
            self.lab.start_peerland("pe1")
            wait_for("the daemon", lambda: self.lab.pid("pe1"))
            time.sleep(0.3)
        wait_for("pe1 in service", lambda: self.lab.in_service("pe1"), 30)

    def reloads(self):
        file = self.lab.folder / "ixp" / "pe1.yaml"
        text = file.read_text()
        for n in range(5):
            changed = text.replace("    mtu: 1500\n", f"    mtu: 1500\n    duplicate-mac: {{ moves: {n + 6} }}\n"
                                                      f"    export-targets: [65000:100, 65000:{n + 1000}]\n")
            changed = changed.replace("\nbroadcast-domains:", f"\npolicies:\n  peering:\n    ingress: {{ arp: {{ pps: {n + 30} }} }}\n"
                                                              "\nbroadcast-domains:")
            file.write_text(changed)
            self.lab.run("pe1", "peerlan", "reload")
        file.write_text(text)
        self.lab.run("pe1", "peerlan", "reload")

    def reflector(self, number):
        self.lab.kill("rs1", number)
        time.sleep(1)
        self.lab.run("rs1", "peerlan-node", "start", "peerland")
        self.lab.wait_converged(120)

    def permanent_neighbors(self, node):
        for n in (n for n in labkit.MEMBERS if f"m{n}" != node):
            for address in (labkit.ip4(n), labkit.ip6(n)):
                self.lab.run(node, "ip", "neigh", "replace", address, "lladdr", labkit.mac(n), "dev", "eth1", "nud", "permanent")

    def port_flap(self):
        """The member keeps its neighbor entries: a kernel that loses them with the link asks again a second later."""
        self.lab.run("pe1", "ip", "link", "set", "m1", "down")
        time.sleep(0.5)
        self.lab.run("pe1", "ip", "link", "set", "m1", "up")

    def all(self):
        self.measure("restart of the daemon (SIGTERM)", lambda: self.restart("pe1", signal.SIGTERM))
        self.measure("kill -9 of the daemon, started again", lambda: self.restart("pe1", signal.SIGKILL))
        self.measure("upgrade to a build with other eBPF maps", lambda: self.restart("pe1", signal.SIGTERM, 0, True))
        self.measure("and back", lambda: self.restart("pe1", signal.SIGTERM, 0))
        self.measure("crash loop: five times kill -9", self.crash_loop)
        self.measure("five reloads (EVPN settings, policies)", self.reloads)
        # FRRouting 8.4 drops EVPN routes with the session, whatever graceful restart says: only peerland's members then;
        # with_two_reflectors() has both.
        self.measure("kill -9 of the reflector, started again", lambda: self.reflector(signal.SIGKILL), (1, 3), (1, 3))
        self.measure("restart of the reflector (SIGTERM)", lambda: self.reflector(signal.SIGTERM), (1, 3), (1, 3))
        self.permanent_neighbors("m1")
        self.measure("member port down for 0.5 s", self.port_flap)

    def one_of_two(self, node, number):
        two_reflectors.stop(self.lab, node, number)
        time.sleep(1)
        two_reflectors.back(self.lab, node)

    def with_two_reflectors(self):
        self.measure(ONE_OF_TWO[0], lambda: self.one_of_two("rs1", signal.SIGKILL))
        self.measure(ONE_OF_TWO[1], lambda: self.one_of_two("monitor", signal.SIGTERM))


# --- a member that moves, and a PE that dies: a lab of learning PEs


def move(lab):
    """m2's station (MAC and address) goes from its port at pe1 to m4's port at pe2, while m1 and m3 ping it."""
    rows = []
    address, station = labkit.ip4(2), labkit.mac(2)

    def at(node, other):
        for command in ("ip addr flush dev eth1", "ip link set eth1 down"):
            lab.run(other, *command.split())
        for command in ("ip link set eth1 down", f"ip link set eth1 address {station}", "ip link set eth1 up",
                        f"ip addr replace {address}/24 dev eth1"):
            lab.run(node, *command.split())
        lab.run(node, "arping", "-c", "1", "-A", "-I", "eth1", address, check=False)
    for n in (1, 3):
        lab.run(f"m{n}", "ping", "-c", "2", "-i", "0.2", address, check=False)
    places = [(f"m{n}", f"m{n}", None, [address, "--interval", "1000"]) for n in (1, 3)]
    for here, there in (("m4", "m2"), ("m2", "m4")):
        with lab._children("probe", places) as results:
            time.sleep(1)
            began = time.monotonic()
            at(here, there)
            took = time.monotonic() - began
            time.sleep(2)
        for n, what in ((1, "pe1"), (3, "pe2")):
            t = results[f"m{n}"]["targets"][0]
            rows.append((f"{there} -> {here}, seen from {what}", t["sent"], t["lost"], t["longest_gap_ms"], took * 1000))
            log(f"move {rows[-1]}")
    return rows


def death(lab):
    """How long until pe1 uses no MAC of pe2: when pe2's link goes (hold time), and when pe1 loses the route."""
    rows = []

    def remote():
        return lab.output("pe1", "bridge", "fdb", "show", "dev", "vx100").count("dst 10.0.0.2") - 1  # the flood entry

    def until_gone(name, action):
        lab.wait_converged(120)
        began = time.monotonic()
        action()
        while remote() > 0 and time.monotonic() - began < 60:
            time.sleep(0.005)
        rows.append((name, time.monotonic() - began))
        log(f"death {rows[-1]}")
    until_gone("route to its tunnel endpoint gone (next-hop tracking)",
               lambda: lab.run("pe1", "ip", "route", "add", "unreachable", "10.0.0.2"))
    lab.run("pe1", "ip", "route", "del", "unreachable", "10.0.0.2")
    # Of the session alone: without graceful restart for this measurement its routes would stay for the restart time.
    until_gone("its core link down: the hold time of 9 s",
               lambda: lab.run("core", "ip", "link", "set", "pe2", "down"))
    lab.run("core", "ip", "link", "set", "pe2", "up")
    lab.run("core", "ip", "route", "replace", "10.0.0.2/32", "via", "10.1.2.1")
    return rows


# --- many MACs


class Many(test_repair.PeCase):
    def runTest(self):
        pass

    def times(self):
        rows = []

        def timed(name, action, wanted):
            began = time.monotonic()
            action()
            wait_for(name, wanted, 120)
            rows.append((name, time.monotonic() - began))
            log(f"many {rows[-1]}")

        def announce():
            for i in range(0, MACS, 60):
                self.announce(self.two, test_repair.FAR, *[self.two.mac(b"\2\0\2" + n.to_bytes(3, "big"))
                                                           for n in range(i, min(i + 60, MACS))])

        def there():
            return self.domain()["macs_remote"] >= MACS

        def gone():
            return self.domain()["macs_remote"] == 0
        timed(f"{MACS} routes announced by a script, until all are in the FDB", announce, there)
        timed("the route to the PE goes, until none is in the FDB",
              lambda: self.ip("route", "del", "172.16.0.0/24", "dev", "u0"), gone)
        timed("the route comes back, until all are in the FDB",
              lambda: self.ip("route", "add", "172.16.0.0/24", "dev", "u0"), there)
        timed("its session ends, until none is in the FDB", self.two.close, gone)
        return rows


def many():
    Many.setUpClass()
    case = Many()
    try:
        case.setUp()
        return case.times()
    finally:
        Many.doClassCleanups()


def raw_rates():
    """(who, added a second, removed a second) of the daemon's layer and of nlbench, three times each, the best."""
    name = f"plscale{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    results = {}

    def out(*argv):
        return subprocess.run([*inside, *map(str, argv)], check=True, stdout=subprocess.PIPE, text=True).stdout
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        out("ip", "link", "set", "lo", "up")
        for _ in range(3):
            mine = json.loads(out(BUILD / "bench" / "kernel_scale", MACS))
            results.setdefault("peerland (Kernel::apply_remote_macs)", []).append(
                (MACS / mine["add_s"], MACS / mine["remove_s"]))
            out("ip", "link", "add", "brx", "type", "bridge")
            out("ip", "link", "add", "vxx", "type", "vxlan", "id", "9", "local", "10.0.0.1", "dstport", "4789", "nolearning")
            out("ip", "link", "set", "vxx", "master", "brx", "up")
            out("ip", "link", "set", "brx", "up")
            times = []
            for words in (("fdb-add", "vxx", MACS, "02:20:00:00:00:00", "10.0.0.2"), ("fdb-del", "vxx", MACS, "02:20:00:00:00:00")):
                began = time.monotonic()
                out(BUILD / "bench" / "nlbench", *words)
                times.append(time.monotonic() - began)
            out("ip", "link", "del", "vxx")
            out("ip", "link", "del", "brx")
            results.setdefault("nlbench (raw batches)", []).append((MACS / times[0], MACS / times[1]))
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)
    best = [(who, max(a for a, _ in runs), max(r for _, r in runs)) for who, runs in results.items()]
    log(f"rates {best}")
    return best


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
                     + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--case", default="", help="only the failures with this in their name; prints")
    options = parser.parse_args()
    parts = []
    lab = labkit.Lab("failover")
    lab.up()
    try:
        cases = Cases(lab, options.case)
        cases.all()
    finally:
        lab.down()
    if any(options.case in name for name in ONE_OF_TWO):
        lab = labkit.Lab("failtwo", edit=two_reflectors.EDIT)
        lab.up()
        try:
            two_reflectors.wait(lab)
            cases.lab = lab
            cases.with_two_reflectors()
        finally:
            lab.down()
    parts += ["### Failures without loss\n",
              table(("what happens at pe1 or the reflector", "other PE", "packets", "lost", "longest gap"),
                    [(n, o, f"{s:,}", f"{lost}", f"{gap:.0f} ms" if lost else "none") for n, o, s, lost, gap, _ in cases.rows])]
    if options.case:
        print("\n".join(parts))
        return
    lab = labkit.Lab("failmove", edit={f"ixp/{pe}.yaml": test_flows.learning for pe in ("pe1", "pe2")})
    lab.up()
    try:
        wait_for("the PEs", lambda: lab.in_service("pe1") and lab.in_service("pe2"), 60)
        for n in (1, 2, 3, 4):  # seen once, so that they are known
            lab.run(f"m{n}", "ping", "-c", "1", "-W", "1", labkit.ip4(1 if n != 1 else 2), check=False)
        moved = move(lab)
    finally:
        lab.down()
    parts += ["### A member that moves to another PE\n",
              "The gap holds the move itself (two programs in two network namespaces), see the last column.\n",
              table(("move", "packets", "lost", "longest gap", "the move itself took"),
                    [(n, str(s), str(lost), f"{gap:.0f} ms", f"{took:.0f} ms") for n, s, lost, gap, took in moved])]
    lab = labkit.Lab("faildeath", edit={f"ixp/{f}.yaml": lambda text: text.replace("      hold-time: 9\n", "      hold-time: 9\n      graceful-restart: false\n").replace("      graceful-restart: true\n", "")
                                        for f in ("pe1", "pe2", "rs1")})
    lab.up()
    try:
        dead = death(lab)
    finally:
        lab.down()
    parts += ["### A PE that dies (no graceful restart)\n",
              table(("how", "until its MACs are gone from pe1's FDB"), [(n, f"{t:.2f} s") for n, t in dead])]
    parts += [f"### {MACS:,} MACs behind one PE\n", table(("what", "time"), [(n, f"{t:.2f} s") for n, t in many()])]
    parts += ["### Entries a second in the kernel\n",
              table(("who", "installed", "removed"), [(w, f"{a:,.0f}/s", f"{r:,.0f}/s") for w, a, r in raw_rates()])]
    version = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    text = (f"Measured on {time.strftime('%-d %B %Y')}: {os.cpu_count()} cores, Linux {os.uname().release.split('-')[0]}, peerland {version}, "
            f"FRRouting 8.4, everything on one machine, load average {os.getloadavg()[0]:.0f} at the end.\n\n" + "\n".join(parts))
    print(text)
    if not options.write:
        return
    head = DOCUMENT.read_text().split(BEGIN)[0]
    DOCUMENT.write_text(head + BEGIN + "\n" + text)


if __name__ == "__main__":
    main()
