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
QUICK, LONG = "--quick" in sys.argv, "--long" in sys.argv
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
SECONDS = os.environ.get("SECONDS_EACH", "0.5" if QUICK else "1")
PORTS = [int(n) for n in os.environ.get("PORTS", "2 16" if QUICK else "2 16 64 200").split()]
PE, MEM = "plbb-pe", "plbb-mem"
PINS = "/sys/fs/bpf/plbb"
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="plbb-"))
children = []


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


def mac(i):
    return f"02:00:00:01:{i // 256:02x}:{i % 256:02x}"


def own_mac(i):
    """Of the device itself: other than what is sent to, so that the receiver's kernel drops it at once."""
    return f"02:00:00:02:{i // 256:02x}:{i % 256:02x}"


def topology(ports):
    """p1 .. pN in MEM - m1 .. mN in PE on br0, with an FDB entry for each member."""
    for ns in (PE, MEM):
        run("ip", "netns", "del", ns, check=False)
        run("ip", "netns", "add", ns)
        run(*inside(ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"))
        run(*inside(ns, "ip", "link", "set", "lo", "up"))
    run(*inside(PE, "ip", "link", "add", "br0", "address", "02:00:00:00:be:00", "type", "bridge", "mcast_snooping",
                "0"))
    run(*inside(PE, "ip", "link", "set", "br0", "up"))
    numbers = range(1, ports + 1)
    run(*inside(PE, "ip", "-batch", "-"), stdin="".join(
        f"link add m{i} type veth peer name p{i} netns {MEM}\nlink set m{i} master br0 up\n" for i in numbers))
    run(*inside(MEM, "ip", "-batch", "-"), stdin="".join(f"link set p{i} address {own_mac(i)} up\n" for i in numbers))
    run(*inside(PE, "bridge", "-batch", "-"), stdin="".join(f"fdb add {mac(i)} dev m{i} master static\n"
                                                            for i in numbers))
    while run(*inside(PE, "bridge", "link", "show")).count("state forwarding") < ports:
        time.sleep(0.05)


# --- who limits
@contextlib.contextmanager
def nothing(ports, **_):
    yield


@contextlib.contextmanager
def programs(ports, into, out, limit=None):
    """The minimal limiter's programs; `nop` is the empty one."""
    folder = f"{PINS}/lim"
    os.makedirs(folder, exist_ok=True)
    run(BENCH / "bpfctl", "load", BENCH / "limiter.bpf.o", folder)
    os.makedirs(f"{PINS}/links", exist_ok=True)
    try:
        if limit:
            for cls in range(3):
                run(*inside(PE, BENCH / "bpfctl", "limit", folder, f"m1..{ports}", "in", cls, *limit))
        for hook, program in (("ingress", into), ("egress", out)):
            if program:
                run(*inside(PE, BENCH / "bpfctl", "tcx", f"m1..{ports}", hook, f"{folder}/{program}",
                            f"{PINS}/links/{hook}"))
        yield
    finally:
        run("rm", "-rf", PINS)


def empty(ports, **_):
    return programs(ports, "nop", "nop")


def minimal(ports, pps=1000, bps=0, burst=10, **_):
    return programs(ports, "lim_in", None, (pps, 10, bps, 3028))


@contextlib.contextmanager
def peerlan(ports, **rates):
    more = [x for key, value in rates.items() if value for x in (f"--{key}", value)]
    os.makedirs(PINS, exist_ok=True)
    p = spawn(PE, BENCH / "bum_node", "--pins", f"{PINS}/node", "--ports", ports, *more)
    try:
        if p.stdout.readline().strip() != "ready":
            raise RuntimeError("bum_node did not start")
        yield
    finally:
        end(p)


@contextlib.contextmanager
def nftables(ports, **_):
    """Source MACs, link-local groups, EtherTypes and limits per port, both ways: bridge rules."""
    rule = ("ether type != { 0x0800, 0x0806, 0x86dd, 0x88b5 } drop; ether daddr & ff:ff:ff:ff:ff:f0 == "
            "01:80:c2:00:00:00 drop; meta pkttype broadcast limit rate over 1000/second burst 10 packets drop; "
            "meta pkttype multicast limit rate over 1000/second burst 10 packets drop;")
    text = "table bridge t {\n"
    for i in range(1, ports + 1):
        text += f"chain i{i} {{ ether saddr != {mac(i)} drop; {rule} }}\nchain o{i} {{ {rule} }}\n"
    for name, hook, key in (("i", "prerouting", "iif"), ("o", "postrouting", "oif")):
        jumps = ", ".join(f"m{i} : jump {name}{i}" for i in range(1, ports + 1))
        text += f"chain {name} {{ type filter hook {hook} priority 0; {key} vmap {{ {jumps} }} ; }}\n"
    run(*inside(PE, "nft", "-f", "-"), stdin=text + "}\n")
    try:
        yield
    finally:
        run(*inside(PE, "nft", "flush", "ruleset"))


def send(*more, port="p1", seconds=SECONDS):
    return json.loads(run(*inside(MEM, BENCH / "arpblast", "send", "--if", port, "--src-mac",
                                  mac(int(port[1:])), "--dur", seconds, *more)))


def received():
    links = json.loads(run(*inside(MEM, "ip", "-j", "-s", "link")))
    return sum(link["stats64"]["rx"]["packets"] for link in links if link["ifname"].startswith("p"))


# --- tables
def table(title, head, rows):
    out = [f"### {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(out) + "\n"


def forwarding():
    """CPU of the sending thread: on a veth pair the whole path runs in it."""
    variants = {"nothing": nothing, "empty programs": empty, "peerlan": peerlan, "nftables": nftables}
    found = {}
    for ports in PORTS:
        topology(ports)
        for _ in range(ROUNDS):
            for name, variant in variants.items():
                with variant(ports):
                    got = send("--class", "dst", "--dst", mac(2), "--size", 60, "--ip", 4)["tx_ns_med"]
                    found.setdefault((name, ports), []).append(got)
    median = {key: statistics.median(values) for key, values in found.items()}
    rows = [[name] + [f"{median[name, n]:.0f} ({median[name, n] / median['empty programs', n]:.3f})" for n in PORTS]
            for name in variants]
    return table("Known unicast forwarded, 60 octets: ns a frame (ratio to empty programs)",
                 ["rules"] + [f"{n} ports" for n in PORTS], rows)


def storm():
    variants = {"minimal limiter": minimal, "peerlan, 1000/s": lambda n: peerlan(n, pps=1000, burst=10),
                "peerlan, policy peering": peerlan, "nftables": nftables}
    found, copies = {}, {}
    sizes = [n for n in PORTS if n >= 64] or PORTS[-1:]
    for ports in sizes:
        topology(ports)
        for _ in range(ROUNDS):
            for name, variant in variants.items():
                with variant(ports):
                    before = received()
                    got = send("--class", "bcast", "--size", 60)
                    found.setdefault((name, ports), []).append(got["tx_ns"])
                    rate = (received() - before) / (ports - 1) / got["secs"]
                    copies.setdefault((name, ports), []).append(rate)
    median = lambda d, *key: statistics.median(d[key])
    rows = [[name] + [f"{median(found, name, n):.0f} ({median(found, name, n) / median(found, 'minimal limiter', n):.2f})"
                      f", {median(copies, name, n):.0f}/s" for n in sizes] for name in variants]
    return table("Broadcast storm into one port at full rate: ns a frame (ratio to the minimal limiter), frames to each "
                 "other port", ["rules"] + [f"{n} ports" for n in sizes], rows)


def exact(limit, size, seconds, bursty):
    """What came out against limit times time plus burst , in per cent."""
    key, value = limit
    burst = 0.5  # longer than the pause between bursts
    with peerlan(2, **{key: value, "burst": 500}):
        counter = spawn(MEM, BENCH / "arpblast", "count", "--if", "p2", "--dur", seconds + 3)
        time.sleep(0.5)
        begin = time.monotonic()
        per_frame = 1 if key == "pps" else 8 * size
        offered = min(3 * value / per_frame, 120000)
        if bursty:
            while time.monotonic() - begin < seconds:
                send("--class", "bcast", "--size", size, "--num", max(1, int(offered / 4)), seconds=1)
                time.sleep(max(0.0, 0.2 - (time.monotonic() - begin) % 0.2))
            took = time.monotonic() - begin
        else:
            took = send("--class", "bcast", "--size", size, "--pps", offered, seconds=seconds)["secs"]
        out = json.loads(counter.communicate()[0])["ifs"][0]["n"]
        children.remove(counter)
    return 100 * (out * per_frame / (value * (took + burst)) - 1)


def exactness(seconds):
    topology(2)
    rows = []
    limits = [("100 frames/s", ("pps", 100)), ("1000 frames/s", ("pps", 1000)), ("1 Mbit/s", ("bps", 1000000)),
              ("100 Mbit/s", ("bps", 100000000))]
    for name, limit in limits:
        for size in (60, 1514) if QUICK else (60, 128, 512, 1514):
            row = [exact(limit, size, seconds, bursty) for bursty in (False, True)]
            rows.append([name, size] + [f"{value:+.2f} %" for value in row])
    return table(f"Exactness over {seconds} s: what came out against limit x time + burst (500 ms)",
                 ["limit", "octets", "constant", "bursty"], rows)


def main():
    atexit.register(clean)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    only = os.environ.get("ONLY", "forwarding storm exactness").split()
    parts = [part() for name, part in (("forwarding", forwarding), ("storm", storm),
                                       ("exactness", lambda: exactness(2 if QUICK else 5))) if name in only]
    if LONG:
        parts.append(exactness(60))
    load = os.getloadavg()[0]
    head = (f"# The BUM policy, measured\n\nMade by `bench/bum.sh{' --quick' if QUICK else ''}` on {os.cpu_count()} CPUs,"
            f" kernel {platform.release()}; load average at the end {load:.1f}. Medians of {ROUNDS} round(s) of {SECONDS} s,"
            " all variants in turns.\nFrames have EtherType 0x88b5, which the policies list for this.\n\n")
    text = head + "\n".join(parts)
    if "--write" in sys.argv:
        (ROOT / "docs" / "performance-bum.md").write_text(text)
    print(text)


main()
