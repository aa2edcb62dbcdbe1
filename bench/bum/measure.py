#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What bench/bum.sh runs. Namespaces are called plbb-*, pins are below /sys/fs/bpf/plbb; both go
whatever way this ends."""
import atexit
import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = pathlib.Path(os.environ.get("BUILD", ROOT / "build" / "release")) / "bench"
QUICK, WRITE = "--quick" in sys.argv, "--write" in sys.argv
ROUNDS = int(os.environ.get("ROUNDS", "3" if QUICK else "9"))
SECONDS = float(os.environ.get("SECONDS_EACH", "0.3" if QUICK else "0.4"))
PORTS = [int(n) for n in os.environ.get("PORTS", "2 16" if QUICK else "2 16 64 200").split()]
STORMS = [int(n) for n in os.environ.get("STORMS", "64" if QUICK else "64 200").split()]
SPANS = [int(n) for n in os.environ.get("SPANS", "2" if QUICK else "5 60").split()]
TOPOLOGIES = 1 if QUICK else 3  # made anew for the forwarding of known unicast
PE, MEM = "plbb-pe", "plbb-mem"
PINS = "/sys/fs/bpf/plbb"
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="plbb-"))
RATE, BURST = 1000, 10  # of the storms: frames a second, frames at once
children = []
began = time.monotonic()


def say(text):
    print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)


def run(*argv, check=True, stdin=None):
    r = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                       input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL)
    if check and r.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}: {r.stderr or r.stdout}")
    return r.stdout


def inside(ns, *argv):
    """`ip netns exec` would hide the bpffs."""
    return ["nsenter", f"--net=/run/netns/{ns}", *map(str, argv)]


def spawn(ns, *argv):
    p = subprocess.Popen(inside(ns, *argv), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                         text=True)
    children.append(p)
    return p


def output(process):
    """Of a process that ends by itself."""
    text = process.communicate()[0]
    children.remove(process)
    if process.returncode:
        raise RuntimeError(f"{' '.join(process.args)}: exit code {process.returncode}")
    return json.loads(text)


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    children.remove(process)


def clean():
    for p in list(children):
        end(p)
    for ns in (PE, MEM):
        run("ip", "netns", "del", ns, check=False)
    run("rm", "-rf", PINS, check=False)
    shutil.rmtree(SCRATCH, ignore_errors=True)


# --- ports
def mac(i):
    return f"02:00:00:01:{i // 256:02x}:{i % 256:02x}"


def own_mac(i):
    """Of the device itself: not what is sent to, so that the receiver's kernel drops it at once."""
    return f"02:00:00:02:{i // 256:02x}:{i % 256:02x}"


def topology(ports, bridges=1):
    """p1 .. pN in MEM - m1 .. mN in PE on br1, or evenly on several bridges; an FDB entry each."""
    for ns in (PE, MEM):
        run("ip", "netns", "del", ns, check=False)
        run("ip", "netns", "add", ns)
        run(*inside(ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"))
        run(*inside(ns, "ip", "link", "set", "lo", "up"))
    numbers = range(1, ports + 1)
    bridge = lambda i: 1 + (i - 1) * bridges // ports
    run(*inside(PE, "ip", "-batch", "-"), stdin="".join(
        f"link add br{b} address 02:00:00:00:be:{b:02x} type bridge mcast_snooping 0\nlink set br{b} up\n"
        for b in range(1, bridges + 1)) + "".join(
        f"link add m{i} type veth peer name p{i} netns {MEM}\nlink set m{i} master br{bridge(i)} up\n" for i in numbers))
    run(*inside(MEM, "ip", "-batch", "-"), stdin="".join(f"link set p{i} address {own_mac(i)} up\n" for i in numbers))
    run(*inside(PE, "bridge", "-batch", "-"), stdin="".join(f"fdb add {mac(i)} dev m{i} master static\n"
                                                            for i in numbers))
    deadline = time.monotonic() + 60
    while run(*inside(PE, "bridge", "link", "show")).count("state forwarding") < ports:
        if time.monotonic() > deadline:
            raise RuntimeError("the bridge does not forward")
        time.sleep(0.05)


def sending(port, *more, seconds=SECONDS):
    return (BENCH / "arpblast", "send", "--if", f"p{port}", "--src-mac", mac(port), "--dur", seconds, *more)


def send(port, *more, seconds=SECONDS):
    return json.loads(run(*inside(MEM, *sending(port, *more, seconds=seconds))))


def received():
    """Frames that came out, by port."""
    links = json.loads(run(*inside(MEM, "ip", "-j", "-s", "link")))
    return {int(link["ifname"][1:]): link["stats64"]["rx"]["packets"] for link in links if link["ifname"][0] == "p"}


# --- who limits. `limits`: {port: ("pps" or "bps", rate)}, else RATE at all ports.
@contextlib.contextmanager
def nothing(ports, **_):
    yield


@contextlib.contextmanager
def programs(ports, into, out, clsact=False, limits=None):
    """The minimal limiter's programs; `nop` is the empty one. Bursts: half a second with `limits`."""
    folder = f"{PINS}/lim"
    os.makedirs(folder, exist_ok=True)
    run(BENCH / "bpfctl", "load", BENCH / "limiter.bpf.o", folder)
    os.makedirs(f"{PINS}/links", exist_ok=True)
    wanted = [(f"m1..{ports}", (RATE, BURST, 0, 0))]
    if limits is not None:
        wanted = [(f"m{i}", (rate, rate / 2, 0, 0) if unit == "pps" else (0, 0, rate, rate / 16))
                  for i, (unit, rate) in limits.items()]
    try:
        if into != "nop":
            for where, values in wanted:
                for cls in range(2):
                    run(*inside(PE, BENCH / "bpfctl", "limit", folder, where, "in", cls, *values))
        for hook, program in (("ingress", into), ("egress", out)):
            if not program:
                continue
            how = [] if clsact else [f"{PINS}/links/{hook}"]
            run(*inside(PE, BENCH / "bpfctl", "clsact" if clsact else "tcx", f"m1..{ports}", hook,
                        f"{folder}/{program}", *how))
        yield
    finally:
        if clsact:
            run(*inside(PE, "tc", "-batch", "-"), stdin="".join(f"qdisc del dev m{i} clsact\n"
                                                                for i in range(1, ports + 1)))
        run("rm", "-rf", PINS)


def empty(ports, clsact=False, **_):
    return programs(ports, "nop", "nop", clsact)


def minimal(ports, limits=None, **_):
    return programs(ports, "lim_in", None, limits=limits)


@contextlib.contextmanager
def peerlan(ports, clsact=False, limits=None, limited=False, **_):
    more = ["--clsact"] if clsact else []
    if limited:
        more += ["--pps", RATE, "--burst", 1000 * BURST // RATE]
    if limits is not None:
        (SCRATCH / "limits").write_text("".join(f"{i} {unit} {rate} 500\n" for i, (unit, rate) in limits.items()))
        more += ["--limits", SCRATCH / "limits"]
    os.makedirs(PINS, exist_ok=True)
    p = spawn(PE, BENCH / "bum_node", "--pins", f"{PINS}/node", "--ports", ports, *more)
    try:
        if p.stdout.readline().strip() != "ready":
            raise RuntimeError("bum_node did not start")
        yield
    finally:
        end(p)


def limited_peerlan(ports, **more):
    return peerlan(ports, limited=True, **more)


@contextlib.contextmanager
def nftables(ports, limits=None, **_):
    """Bridge rules: source MACs, link-local groups, EtherTypes and limits per port, both ways; or
    limits alone."""
    rule = ("ether type != { 0x0800, 0x0806, 0x86dd, 0x88b5 } drop; ether daddr & ff:ff:ff:ff:ff:f0 == "
            f"01:80:c2:00:00:00 drop; meta pkttype broadcast limit rate over {RATE}/second burst {BURST} packets drop; "
            f"meta pkttype multicast limit rate over {RATE}/second burst {BURST} packets drop;")
    text = "table bridge t {\n"
    if limits is None:
        for i in range(1, ports + 1):
            text += f"chain i{i} {{ ether saddr != {mac(i)} drop; {rule} }}\nchain o{i} {{ {rule} }}\n"
        hooks = (("i", "prerouting", "iif"), ("o", "postrouting", "oif"))
        numbers = range(1, ports + 1)
    else:
        for i, (unit, rate) in limits.items():
            over = f"{rate}/second burst {rate // 2} packets" if unit == "pps" else (
                f"{rate // 8} bytes/second burst {rate // 16} bytes")
            text += f"chain i{i} {{ meta pkttype broadcast limit rate over {over} drop; }}\n"
        hooks, numbers = (("i", "prerouting", "iif"),), limits
    for name, hook, key in hooks:
        jumps = ", ".join(f"m{i} : jump {name}{i}" for i in numbers)
        text += f"chain {name} {{ type filter hook {hook} priority 0; {key} vmap {{ {jumps} }} ; }}\n"
    run(*inside(PE, "nft", "-f", "-"), stdin=text + "}\n")
    try:
        yield
    finally:
        run(*inside(PE, "nft", "flush", "ruleset"))


# --- tables
def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(out + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


class Goals:
    """What was wanted, and what was measured."""

    def __init__(self):
        self.rows = []

    def at_most(self, what, figure, goal, text="{:.2f}"):
        self.rows.append([what, text.format(goal), text.format(figure), "yes" if figure <= goal else "**no**"])


goals = Goals()


def in_turns(ports, variants, *frames):
    """CPU of the sending thread, ns a frame, by variant and round: on a veth pair the whole path runs
    in it. What `received` grew by as well."""
    found = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, variant in variants.items():
            with variant(ports):
                before = received()
                got = send(1, *frames)
                after = received()
                got["out"] = {i: after[i] - before[i] for i in after if i != 1}
                found[name].append(got)
    return found


def ratio(found, name, reference):
    """The median of the rounds' own ratios: neighbours in time suffer alike."""
    return statistics.median(a["tx_ns_trim"] / b["tx_ns_trim"] for a, b in zip(found[name], found[reference]))


def cost(found, name):
    return statistics.median(x["tx_ns_trim"] for x in found[name])


def by_themselves():
    say("programs by themselves")
    topology(2)
    with programs(2, "lim_in", None):
        lines = run(*inside(PE, BENCH / "bum_cost", "--pins", f"{PINS}/node", "--minimal", f"{PINS}/lim", "--rounds",
                            ROUNDS)).splitlines()
    figures = [line.split(" ", 1) for line in lines]
    nothing_done = int(figures[0][0])
    return table(["program, frame", "ns a run", "less the empty one"],
                 [[what, ns, int(ns) - nothing_done] for ns, what in figures])


def forwarding():
    variants = {"nothing": nothing, "empty programs": empty, "peerlan": peerlan, "nftables bridge rules": nftables}
    results = {}
    for ports in PORTS:
        results[ports] = {}
        for n in range(TOPOLOGIES):  # where the kernel puts devices in memory is worth a few percent, too
            say(f"forwarding, {ports} ports, {n + 1} of {TOPOLOGIES}")
            topology(ports)
            found = in_turns(ports, variants, "--class", "dst", "--dst", mac(2), "--size", 60, "--ip", 4)
            for name, costs in found.items():
                results[ports].setdefault(name, []).extend(costs)
        mine, nft = (ratio(results[ports], name, "empty programs") for name in ("peerlan", "nftables bridge rules"))
        goals.at_most(f"known unicast, {ports} ports: time to that of empty programs", mine, 1.05, "{:.3f}")
        goals.at_most(f"known unicast, {ports} ports: less than nftables", mine, nft, "{:.3f}")
    return table(["at each port"] + [f"{n} ports" for n in PORTS],
                 [[name] + [f"{cost(results[n], name):.0f} ({ratio(results[n], name, 'empty programs'):.3f})"
                            for n in PORTS] for name in variants])


def more_forwarding():
    ports = PORTS[-1] if QUICK else 64
    say(f"forwarding of other frames, {ports} ports")
    topology(ports)
    cases = [("IPv6, 74 octets", {}, ("--size", 74, "--ip", 6)), ("IPv4, 1514 octets", {}, ("--size", 1514, "--ip", 4)),
             ("EtherType 0x88b5, 60 octets: the long way", {}, ("--size", 60)),
             ("IPv4, 60 octets, clsact instead of tcx", {"clsact": True}, ("--size", 60, "--ip", 4))]
    rows = []
    for what, how, frames in cases:
        variants = {"empty": lambda n, how=how: empty(n, **how), "peerlan": lambda n, how=how: peerlan(n, **how)}
        found = in_turns(ports, variants, "--class", "dst", "--dst", mac(2), *map(str, frames))
        rows.append([what, f"{cost(found, 'empty'):.0f}", f"{cost(found, 'peerlan'):.0f}",
                     f"{ratio(found, 'peerlan', 'empty'):.3f}"])
    return ports, table(["frames", "empty programs", "peerlan", "ratio"], rows)


def storms():
    variants = {"minimal limiter": minimal, f"peerlan, {RATE}/s": limited_peerlan, "peerlan, `peering`": peerlan,
                "nftables bridge rules": nftables}
    kinds = {"broadcast": ("--class", "bcast", "--size", 60, "--ip", 4),
             "multicast": ("--class", "mcast", "--dst", "33:33:00:00:00:05", "--size", 74, "--ip", 6)}
    rows = {name: [name] for name in variants}
    for ports in STORMS:
        topology(ports)
        for kind, frames in kinds.items():
            say(f"storm of {kind}, {ports} ports")
            found = in_turns(ports, variants, *frames)
            for name in variants:
                share = max(max(x["out"].values()) / (RATE * x["span"] + BURST) for x in found[name])
                against = ratio(found, name, "minimal limiter")
                rows[name].append(f"{cost(found, name):.0f} ({against:.2f}), {100 * share:.1f} %")
                if name.startswith("peerlan,"):
                    goals.at_most(f"storm of {kind}, {ports} ports, {name[9:]}: time to that of the minimal limiter",
                                  against, 1.2)
                    goals.at_most(f"storm of {kind}, {ports} ports, {name[9:]}: share of the limit at other ports", share,
                                  1.01, "{:.3f}")
    return table(["at each port"] + [f"{kind}, {n} ports" for n in STORMS for kind in kinds], rows.values())


def fairness():
    """Storm on p1, another sender on p3, counted at p2 by sender."""
    say("storm on one port, others' share")
    ports, seconds = 16, 2 if QUICK else 5
    topology(ports)
    rows = []
    for who, variant in (("nothing", nothing), (f"peerlan, {RATE}/s", limited_peerlan),
                         ("nftables bridge rules", nftables)):
        for what, other in (("100 frames/s", 100), ("a storm as well", 0)):
            if other == 0 and variant is nothing:
                continue
            with variant(ports):
                counter = spawn(MEM, BENCH / "arpblast", "count", "--if", "p2", "--dur", seconds + 2, "--cpu-rx", -1)
                time.sleep(0.7)
                storm = spawn(MEM, *sending(1, "--class", "bcast", "--ip", 4, "--id", 0, seconds=seconds + 0.5))
                time.sleep(0.2)
                quiet = send(3, "--class", "bcast", "--ip", 4, "--id", 1, "--pps", other, "--cpu-tx", 1, seconds=seconds)
                flood = output(storm)
                came = output(counter)["ifs"][0]["id"]
            wanted = quiet["sent"] if other else RATE * quiet["span"] + BURST
            rows.append([who, what, f"{flood['sent_pps']:,.0f}", f"{came[0] / flood['span']:,.0f}",
                         f"{100 * came[1] / wanted:.1f} %"])
            if variant is limited_peerlan:
                goals.at_most(f"storm beside {what}: what the other sender lost of its share, %",
                              100 - 100 * came[1] / wanted, 1, "{:.1f}")
    return table(["at each port", "second sender", "storm: frames/s in", "out", "second sender: of what it may send"], rows)


# --- exactness: every limit on a pair of ports of its own, m1 - m2, m3 - m4 ... on bridges of their own
LIMITS = {"100 frames/s": ("pps", 100), "1000 frames/s": ("pps", 1000), "1 Mbit/s": ("bps", 1000000),
          "100 Mbit/s": ("bps", 100000000)}
SIZES = (60, 512, 1514) if QUICK else (60, 128, 512, 1514)
HOWS = ("constant", "bursty")
CASES = [(name, size, how) for name in LIMITS for size in SIZES for how in HOWS]
PORT = {case: 2 * i + 1 for i, case in enumerate(CASES)}
EVERY = 0.2  # s between bursts; the buckets hold 0.5 s


def allowance(case, span):
    """Frames in this time and a full bucket."""
    unit, rate = LIMITS[case[0]]
    return rate * (span + 0.5) / (1 if unit == "pps" else 8 * case[1])


def pace(case):
    per_second = allowance(case, 0.5)
    if per_second > 100000 and case[2] == "constant":
        return ()  # all that goes
    offered = per_second * (1.5 if per_second > 20000 else 3)
    if case[2] == "constant":
        return ("--pps", int(offered))
    return ("--burst", max(2, int(offered * EVERY)), "--every", int(1000 * EVERY))


def groups():
    """What is sent side by side: all slow ones, then of the fast ones one on each of two CPUs, one of
    small frames beside one of large ones."""
    slow = [case for case in CASES if case[0] != "100 Mbit/s"]
    fast = [case for case in CASES if case[0] == "100 Mbit/s"]
    if os.cpu_count() < 2:
        return [slow] + [[case] for case in fast]
    pairs = [[fast[i], fast[-1 - i]] for i in range(len(fast) // 2)]
    return [slow] + pairs + ([[fast[len(fast) // 2]]] if len(fast) % 2 else [])


def exact(variant, seconds):
    """What came out against what the limit allows, in per cent, by case. None: less was offered."""
    limits = {PORT[case]: LIMITS[case[0]] for case in CASES}
    out = {}
    with variant(2 * len(CASES), limits=limits):
        time.sleep(0.6)  # full buckets
        for group in groups():
            before = received()
            senders = {case: spawn(MEM, *sending(PORT[case], "--class", "bcast", "--ip", 4, "--size", case[1], "--cpu-tx",
                                                 i % os.cpu_count(), *pace(case), seconds=seconds))
                       for i, case in enumerate(group)}
            reports = {case: output(p) for case, p in senders.items()}
            after = received()
            for case, report in reports.items():
                allowed = allowance(case, report["span"])
                came = after[PORT[case] + 1] - before[PORT[case] + 1]
                out[case] = 100 * (came / allowed - 1) if report["sent"] > allowed else None
    return out


def percent(value):
    return "not offered" if value is None else f"{value:+.2f} %"


def exactness():
    topology(2 * len(CASES), bridges=len(CASES))
    mine = {}
    for seconds in SPANS:
        say(f"exactness over {seconds} s")
        mine[seconds] = exact(peerlan, seconds)
        worst = [abs(x) for x in mine[seconds].values() if x is not None]
        goals.at_most(f"exactness over {seconds} s: largest error, %", max(worst, default=float("nan")), 1)
        missed = sum(x is None for x in mine[seconds].values())
        if missed:
            goals.at_most(f"exactness over {seconds} s: limits that were not reached by what was sent", missed, 0, "{:.0f}")
    say(f"exactness of others over {SPANS[0]} s")
    others = {"peerlan": mine[SPANS[0]], "minimal limiter": exact(minimal, SPANS[0]), "nftables": exact(nftables, SPANS[0])}
    head = ["limit", "octets"] + [f"{how}, {seconds} s" for seconds in SPANS for how in HOWS]
    rows = [[name, size] + [percent(mine[seconds][name, size, how]) for seconds in SPANS for how in HOWS]
            for name in LIMITS for size in SIZES]
    compared = []
    for name in LIMITS:
        row = [name]
        for found in others.values():
            values = [x for case, x in found.items() if case[0] == name and x is not None]
            row.append(f"{min(values):+.2f} to {max(values):+.2f} %" if values else "not offered")
        compared.append(row)
    return table(head, rows), table(["limit"] + list(others), compared)


def report(parts):
    revision = run("git", "-C", ROOT, "rev-parse", "--short", "HEAD", check=False).strip()
    missed = [row for row in goals.rows if row[3] != "yes"]
    verdict = "All goals were met." if not missed else f"{len(missed)} of {len(goals.rows)} goals were missed."
    return f"""# BUM policy and port security: speed and exactness

Made by `bench/bum.sh{' --quick' if QUICK else ''}{' --write' if WRITE else ''}` from revision {revision}: Linux {platform.release().split('-')[0]}, {os.cpu_count()} CPUs, load average
{parts['load before']:.1f} before and {parts['load after']:.1f} at the end; {ROUNDS} rounds of {SECONDS} s, all of one table in turns (known unicast in {TOPOLOGIES} topologies, one after the other). The sender writes to a veth pair, so
that the whole path runs inside its send call and costs are those of one CPU, sending included; go by ratios, absolute figures
move with the machine. A ratio is the median of those of the rounds.

- empty programs: one that returns at once, at both hooks of each port (tcx).
- minimal limiter: one token bucket for each port and class at ingress, nothing else is looked at.
- peerlan: policy `peering` at both hooks, sources enforced, with all of its checks and counters, unless a rate is named; then
  each class has that limit at ingress.
- nftables: bridge rules for each port in both directions: source MAC, link-local groups, EtherTypes, limits. No look into IP,
  no unknown unicast, no counters. In the exactness table: limits at ingress alone.

{verdict}

{table(['goal', 'at most', 'measured', 'met'], goals.rows)}

## Known unicast, forwarded from one member to another

IPv4, 60 octets: ns a frame, and the time to that with empty programs in brackets.

{parts['forwarding']}

IPv4 and IPv6 of provisioned sources to known MACs, and their UDP to groups, take a short way through the programs
(`dataplane/bpf/quick.h`): all that the policy can say about them is decided by one cache line of the port's settings, the first
octets of the frame and a table of known MACs. What else is listed takes the long way. {parts['other ports']} ports:

{parts['more forwarding']}

## Storm into one port at full rate

ns a frame, (ratio to the minimal limiter), and the most that any other port got, as part of {RATE} frames/s and a burst of {BURST}.
The policy `peering` lets no such frame pass.

{parts['storms']}

Broadcast into port 1 at full rate, 16 ports, counted at port 2 by sender. "of what it may send": all that it sent, or {RATE}
frames/s and a burst of {BURST} when it storms too. The rules for nftables limit what goes out to a port as well, and all share that.

{parts['fairness']}

## Exactness

Broadcast over the limit at ingress, what came out against limit x time + burst (500 ms), both directions of error. Constant: three
times the limit evenly (at 100 Mbit/s 1.5 times, with 60 and 128 octets as fast as it goes). Bursty: as many in bursts, five a second.

{parts['exactness']}

The same over {SPANS[0]} s, from the least to the most of all sizes and both ways to send. nftables counts octets behind the Ethernet header
and starts with a second's worth of them.

{parts['others']}

## Programs by themselves

`BPF_PROG_TEST_RUN`, 200,000 runs each on a frame that stays in the cache: what the kernel spends around them is not in it.

{parts['programs']}
"""


def main():
    for unknown in set(sys.argv[1:]) - {"--quick", "--write"}:
        sys.exit(f"no option {unknown}")
    atexit.register(clean)
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: sys.exit(130))
    parts = {"load before": os.getloadavg()[0]}
    parts["forwarding"] = forwarding()
    parts["other ports"], parts["more forwarding"] = more_forwarding()
    parts["storms"] = storms()
    parts["fairness"] = fairness()
    parts["exactness"], parts["others"] = exactness()
    parts["programs"] = by_themselves()
    parts["load after"] = os.getloadavg()[0]
    text = report(parts)
    if WRITE:
        (ROOT / "docs" / "performance-bum.md").write_text(text)
    print(text)
    say("done")


if __name__ == "__main__":
    main()
