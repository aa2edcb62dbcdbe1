#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What bench/proxy.sh runs: topology, rounds, tables. Namespaces are called plbp-*, pins are below
/sys/fs/bpf/plbp; both go whatever way this ends."""
import atexit
import contextlib
import ctypes
import json
import os
import pathlib
import platform
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build" / "release"))
BENCH = BUILD / "bench"
QUICK = "--quick" in sys.argv
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
SECONDS = os.environ.get("SECONDS_EACH", "1")
N = 100000
PE, GEN = "plbp-pe", "plbp-gen"
PINS = "/sys/fs/bpf/plbp"
V4, V6 = "10.1.0.0", "2001:db8:1::"
ASKER = "02:00:00:00:00:01"
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="plbp-"))
libc = ctypes.CDLL(None, use_errno=True)
children = []


def run(*argv, check=True, **more):
    r = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                       stdin=subprocess.DEVNULL, **more)
    if check and r.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}: {r.stderr or r.stdout}")
    return r.stdout


def inside(ns, *argv):
    """`ip netns exec` would hide the bpffs."""
    return ["nsenter", f"--net=/run/netns/{ns}", *map(str, argv)]


def spawn(ns, *argv, log="log", **more):
    with open(SCRATCH / log, "ab") as out:
        p = subprocess.Popen(inside(ns, *argv), stderr=out, stdin=subprocess.DEVNULL, **more)
    children.append(p)
    return p


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:
            process.kill()
            process.wait()
    children.remove(process)


def clean():
    for p in list(children):
        end(p)
    for ns in (PE, GEN):
        run("ip", "netns", "del", ns, check=False)
    run("rm", "-rf", PINS, check=False)
    shutil.rmtree(SCRATCH, ignore_errors=True)


def topology(ports):
    """g0 in GEN - m0 in PE on br0 with vx0, and ports - 2 more members whose ends are in GEN, too."""
    for ns in (PE, GEN):
        run("ip", "netns", "del", ns, check=False)
        run("ip", "netns", "add", ns)
        run(*inside(ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"))
        run(*inside(ns, "ip", "link", "set", "lo", "up"))
    pe = lambda *a: run(*inside(PE, "ip", *a))
    pe("link", "add", "br0", "address", "02:00:00:00:be:00", "type", "bridge", "mcast_snooping", "0", "ageing_time",
       "30000")
    pe("link", "set", "br0", "up")
    for i in range(ports):
        run("ip", "link", "add", f"g{i}", "netns", GEN, "type", "veth", "peer", "name", f"m{i}", "netns", PE)
        run(*inside(GEN, "ip", "link", "set", f"g{i}", "address", f"02:00:00:00:00:{i + 1:02x}", "up"))
        pe("link", "set", f"m{i}", "master", "br0", "up")
    pe("addr", "add", "192.0.2.1/32", "dev", "lo")
    pe("link", "add", "vx0", "type", "vxlan", "id", "100", "local", "192.0.2.1", "dstport", "4789", "nolearning")
    pe("link", "set", "vx0", "master", "br0", "up")
    while "state forwarding" not in run(*inside(PE, "bridge", "link", "show", "dev", f"m{ports - 1}")):
        time.sleep(0.02)


def ask(family, *more, seconds=SECONDS, port="g0"):
    base = V4 if family == "ARP" else V6
    return json.loads(run(*inside(GEN, BENCH / "arpblast", "req", "--if", port, "--base", base, "--n", N, "--dur", seconds,
                                  *more)))


# --- who answers
@contextlib.contextmanager
def minimal(hook):
    link = f"{PINS}/min/link"
    program = f"{PINS}/min/{'tc' if hook == 'tcx' else 'xdp'}_responder"
    if hook == "tcx":
        run(*inside(PE, BENCH / "bpfctl", "tcx", "m0", "ingress", program, link))
    else:
        run(*inside(PE, BENCH / "bpfctl", "xdp", "m0", program))
    try:
        yield
    finally:
        if hook == "tcx":
            os.unlink(link)
        else:
            run(*inside(PE, BENCH / "bpfctl", "xdp", "m0", "none"))


@contextlib.contextmanager
def node(*options, about=None):
    """The data path alone, as proxy_node sets it up."""
    p = spawn(PE, BENCH / "proxy_node", "--pins", f"{PINS}/node", *options, stdout=subprocess.PIPE, text=True)
    line = p.stdout.readline()
    if not line:
        raise RuntimeError((SCRATCH / "log").read_text()[-500:])
    if about is not None:
        about.update(json.loads(line))
    try:
        yield
    finally:
        end(p)


@contextlib.contextmanager
def suppress():
    run(*inside(PE, "bridge", "link", "set", "dev", "vx0", "neigh_suppress", "on", "learning", "off"))
    try:
        yield
    finally:
        run(*inside(PE, "bridge", "link", "set", "dev", "vx0", "neigh_suppress", "off"))


def fill_kernel():
    """Neighbours and FDB entries for neigh_suppress."""
    run(*inside(PE, "sysctl", "-qw", "net.ipv6.conf.br0.disable_ipv6=0", "net.ipv6.conf.br0.accept_dad=0",
                *(f"net.ipv{v}.neigh.default.gc_thresh{i}={n}" for v in (4, 6)
                  for i, n in ((3, 600000), (2, 500000), (1, 400000)))), check=False)
    run(*inside(PE, BENCH / "nlbench", "fdb-add", "vx0", N, "02:10:00:00:00:00", "192.0.2.2"))
    for base in (V4, V6):
        run(*inside(PE, BENCH / "nlbench", "neigh-add", "br0", N, base, "02:10:00:00:00:00"))


def hooks(ports, results, modes):
    """Replies a second by each of the modes, in turns."""
    ways = {"minimal tcx": lambda: minimal("tcx"), "peerlan tcx": lambda: node("--ports", names(ports), "--changes", 0),
            "minimal XDP": lambda: minimal("xdp"),
            "peerlan XDP": lambda: node("--ports", names(ports), "--changes", 0, "--xdp"), "neigh_suppress": suppress}
    for _ in range(ROUNDS):
        for mode in modes:
            with ways[mode]():
                for family in ("ARP", "NS"):
                    got = ask(family)
                    wrong = got["wrong_mac"] + got["wrong_target"] + got["wrong_csum"] + got["wrong_dst"] + got["dup"]
                    results.setdefault((mode, ports, family), []).append((got["reply_pps"], got["tx_ns"], wrong))


def names(ports):
    return ",".join(f"m{i}" for i in range(ports))


# --- the daemon, fed by BGP
def nlri(i, base, mac):
    """MAC/IP route, RFC 7432 section 7.2."""
    ip = socket.inet_pton(socket.AF_INET6 if ":" in base else socket.AF_INET, base)
    ip = ip[:-4] + struct.pack("!I", struct.unpack("!I", ip[-4:])[0] + i)
    body = (struct.pack("!HIH", 1, 0xc0000202, 100) + bytes(10) + bytes(4) + b"\x30" + mac + bytes([len(ip) * 8]) + ip +
            struct.pack("!I", 100)[1:])
    return bytes([2, len(body)]) + body


def update(routes):
    """Announces them: next hop 192.0.2.2, route target 65000:100, VXLAN."""
    reach = struct.pack("!HBB", 25, 70, 4) + socket.inet_aton("192.0.2.2") + b"\0" + b"".join(routes)
    attributes = (bytes.fromhex("40010100" "400200" "40050400000064" "c01010" "0002fde800000064" "030c000000000008")
                  + struct.pack("!BBH", 0x90, 14, len(reach)) + reach)
    body = struct.pack("!HH", 0, len(attributes)) + attributes
    return b"\xff" * 16 + struct.pack("!HB", 19 + len(body), 2) + body


def mac_of(i):
    return bytes.fromhex("0210") + struct.pack("!I", i)


class Daemon:
    def __init__(self, responder, profile="static", limits=True):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH))
        ports = [f"""      - interface: m{i}
        name: Member {i}
        as: {64500 + i}
        macs: ["02:00:00:00:00:{i + 1:02x}"]
        addresses: ["10.255.0.{i + 1}", "2001:db8:ffff::{i + 1:x}"]
""" for i in range(3)]
        answers = "" if limits else "    answers: { pps: 100000000, burst: 1s }\n"
        (self.folder / "peerland.yaml").write_text(f"""node: pe
router-id: 192.0.2.1
as: 65000
vtep: 192.0.2.1
next-hop-tracking: off
control: {{ socket: {self.folder}/sock }}
pin-directory: {PINS}/daemon
log: {{ level: warning }}
bgp:
  selection-deferral: 0s
  listen: [{{ address: 127.0.0.1 }}]
  groups: {{ rs: {{ as: 65000, role: peer, passive: true }} }}
  neighbors: [{{ address: 127.0.0.2, group: rs }}]
policies:
  bench:
    allow: []
{answers}broadcast-domains:
  - name: lan
    vni: 100
    bridge: br0
    vxlan: vx0
    profile: {profile}
    responder: {responder}
    prefixes: [10.0.0.0/8, "2001:db8::/32"]
    exempt: [10.255.9.0/24]
    max-bindings: 1000000
    policy: bench
    ports:
{''.join(ports)}""")
        self.process = spawn(PE, BUILD / "bin" / "peerland", "--config", self.folder / "peerland.yaml", log="daemon")
        deadline = time.monotonic() + 90
        while not (self.folder / "sock").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("peerland: " + (SCRATCH / "daemon").read_text()[-1500:])
            time.sleep(0.05)
        self.session = self.connect()

    def connect(self):
        here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{PE}", os.O_RDONLY)
        assert libc.setns(there, 0) == 0
        try:
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        finally:
            assert libc.setns(here, 0) == 0
            os.close(here)
            os.close(there)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.bind(("127.0.0.2", 0))
        deadline = time.monotonic() + 90
        while True:
            try:
                s.connect(("127.0.0.1", 179))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        capabilities = struct.pack("!BBHBB", 1, 4, 25, 0, 70) + struct.pack("!BBI", 65, 4, 65000)
        parameters = struct.pack("!BB", 2, len(capabilities)) + capabilities
        opening = struct.pack("!BHH4sB", 4, 65000, 240, socket.inet_aton("192.0.2.2"), len(parameters)) + parameters
        marker = b"\xff" * 16
        s.sendall(marker + struct.pack("!HB", 19 + len(opening), 1) + opening)
        s.sendall(marker + struct.pack("!HB", 19, 4))
        s.settimeout(60)
        seen = b""
        while marker + struct.pack("!HB", 19, 4) not in seen:
            got = s.recv(65536)
            if not got:
                raise RuntimeError("BGP session refused: " + (SCRATCH / "daemon").read_text()[-1000:])
            seen += got
        s.settimeout(None)
        self.stop = threading.Event()
        self.reader = threading.Thread(target=self.drain, args=(s, ), daemon=True)
        self.reader.start()
        return s

    def drain(self, s):
        marker = b"\xff" * 16 + struct.pack("!HB", 19, 4)
        last = time.monotonic()
        while not self.stop.is_set():
            if select.select([s], [], [], 1)[0] and not s.recv(1 << 20):
                return
            if time.monotonic() - last > 30:
                last = time.monotonic()
                s.sendall(marker)

    def feed(self):
        """All bindings, IPv4 and IPv6; waits until the last ones are answered for."""
        began = time.monotonic()
        for base in (V4, V6):
            for at in range(0, N, 60):
                self.session.sendall(update([nlri(i, base, mac_of(i)) for i in range(at, min(at + 60, N))]))
        deadline = time.monotonic() + 120
        for base in (V4, V6):
            last = base.rsplit(".", 2)[0] if "." in base else base
            while True:
                got = json.loads(run(*inside(GEN, BENCH / "arpblast", "req", "--if", "g0", "--base",
                                             plus(base, N - 1), "--mac-base", plus_mac(N - 1), "--n", 1, "--once",
                                             "--dur", "0.3", "--pps", "50")))
                if got["replies"] > 0:
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{last}: not answered for after the feed")
        return time.monotonic() - began

    def resident(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    def close(self):
        self.stop.set()
        self.reader.join()
        self.session.close()
        end(self.process)
        run(*inside(PE, BUILD / "bin" / "peerland", "--teardown", self.folder / "peerland.yaml"), check=False)


@contextlib.contextmanager
def daemon(*arguments, **more):
    d = Daemon(*arguments, **more)
    try:
        yield d
    finally:
        d.close()


def plus(base, n):
    family = socket.AF_INET6 if ":" in base else socket.AF_INET
    ip = socket.inet_pton(family, base)
    return socket.inet_ntop(family, ip[:-4] + struct.pack("!I", struct.unpack("!I", ip[-4:])[0] + n))


def plus_mac(n):
    return ":".join(f"{b:02x}" for b in mac_of(n))


class PinnedMap:
    """bind4 of the running daemon, by the system call."""

    def __init__(self):
        found = sorted(pathlib.Path(PINS, "daemon").glob("maps*/bind4"))[-1]
        path = ctypes.create_string_buffer(str(found).encode())
        self.fd = self.bpf(7, struct.pack("=QII", ctypes.addressof(path), 0, 0))

    @staticmethod
    def bpf(command, attributes):
        buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
        return libc.syscall(321, command, buffer, 128)

    def mac(self, ip):
        key = ctypes.create_string_buffer(struct.pack("=I", 100) + socket.inet_aton(ip), 8)
        value = ctypes.create_string_buffer(64)
        if self.bpf(1, struct.pack("=IIQQQ", self.fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0)):
            return None
        return value.raw[:6]


def changes(d, count=300):
    """Milliseconds from the UPDATE on the wire to the entry in the kernel's map, looked for about every 0.1 ms: to spin would
    take the processor from the daemon when both are on one."""
    table = PinnedMap()
    out = []
    for k in range(count):
        i = N + k
        ip = plus(V4, i)
        start = time.perf_counter()
        d.session.sendall(update([nlri(i, V4, mac_of(i))]))
        while table.mac(ip) != mac_of(i):
            if time.perf_counter() - start > 5:
                raise RuntimeError("a route did not reach the map")
            time.sleep(0.00005)
        out.append((time.perf_counter() - start) * 1000)
        time.sleep(0.004 + (k % 7) * 0.001)
    return out


def quantile(values, q):
    values = sorted(values)
    return values[int(q * (len(values) - 1))]


@contextlib.contextmanager
def flood():
    """100 000 requests a second for unknown targets into m0."""
    p = spawn(GEN, BENCH / "arpblast", "req", "--if", "g0", "--base", "10.9.0.0", "--n", 60000, "--dur", 60, "--pps",
              100000, stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    try:
        yield
    finally:
        end(p)


def resolution(d):
    """p99 of m1's resolutions: known addresses; and one that nobody answers for (`exempt`), which g2's own kernel does when
    the question was flooded to it."""
    known = ask("ARP", "--pps", 500, "--src-mac", "02:00:00:00:00:02", "--src", "10.255.0.2", seconds=4, port="g1")
    own = "10.255.9.1"
    run(*inside(GEN, "ip", "addr", "replace", own + "/32", "dev", "g2"))
    unknown = json.loads(run(*inside(GEN, BENCH / "arpblast", "req", "--if", "g1", "--base", own, "--n", 1, "--dur", 4,
                                     "--pps", 15, "--src-mac", "02:00:00:00:00:02", "--src", "10.255.0.2", "--mac",
                                     "02:00:00:00:00:03")))
    return known, unknown


# --- output
def median(values):
    return statistics.median(values) if values else 0


def table(heading, rows):
    out = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    out += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(out)


def hook_table(results, ports, modes):
    rows = []
    for mode in modes:
        row = [mode]
        for family in ("ARP", "NS"):
            got = results[mode, ports, family]
            reference = results.get(("minimal XDP" if "XDP" in mode else "minimal tcx", ports, family))
            rate, cost = median([g[0] for g in got]), median([g[1] for g in got])
            ratio = f"{rate / median([g[0] for g in reference]):.2f}" if reference else ""
            row += [f"{rate:,.0f}", ratio, f"{cost:,.0f}", sum(g[2] for g in got)]
        rows.append(row)
    head = ["answered by"] + [f"{f}: {w}" for f in ("ARP", "NS") for w in ("replies/s", "of minimal", "ns each", "wrong")]
    return table(head, rows)


def main():
    atexit.register(clean)
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: sys.exit(130))
    began = time.monotonic()
    results, about = {}, {}
    say = lambda text: print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)

    say("2 ports: minimal responders, peerlan, neigh_suppress")
    topology(3)
    pathlib.Path(PINS, "min").mkdir(parents=True)
    run(BENCH / "bpfctl", "load", BENCH / "responder.bpf.o", f"{PINS}/min")
    for family, base in ((4, V4), (6, V6)):
        run(BENCH / "bpfctl", f"fill{family}", f"{PINS}/min/neigh{family}", base, N, "02:10:00:00:00:00")
    fill_kernel()
    run(*inside(GEN, BENCH / "bpfctl", "xdp", "g0", f"{PINS}/min/xdp_pass"))  # a veth sends from XDP only to XDP
    two = ["minimal tcx", "peerlan tcx", "minimal XDP", "peerlan XDP", "neigh_suppress"]
    hooks(3, results, two)
    with node("--ports", "m0", about=about):
        pass
    run(*inside(GEN, BENCH / "bpfctl", "xdp", "g0", "none"))

    say("libpcap: the minimal responder and the daemon")
    pcap = {}
    for _ in range(ROUNDS):
        p = spawn(PE, BENCH / "pcap_responder", "m0", "--n4", V4, N, "--n6", V6, N, "--immediate", stdout=subprocess.DEVNULL)
        time.sleep(1)
        for family in ("ARP", "NS"):
            pcap.setdefault(("minimal", family), []).append(
                (ask(family)["reply_pps"], ask(family, "--pps", 1000)["lat_us"]["p50"]))
        end(p)
    with daemon("pcap", limits=False) as d:
        d.feed()
        for _ in range(ROUNDS):
            for family in ("ARP", "NS"):
                pcap.setdefault(("peerland", family), []).append(
                    (ask(family)["reply_pps"], ask(family, "--pps", 1000)["lat_us"]["p50"]))

    say("the daemon: feed, changes, flood")
    with daemon("ebpf", profile="dynamic") as d:
        before = d.resident()
        fed = d.feed()
        grown = d.resident() - before
        milliseconds = changes(d)
        quiet = resolution(d)
        with flood():
            busy = resolution(d)

    say("64 ports")
    topology(64)
    fill_kernel()
    many = ["minimal tcx", "peerlan tcx", "neigh_suppress"]
    hooks(64, results, many)

    text = report(results, two, many, pcap, about, fed, grown, milliseconds, quiet, busy)
    if "--write" in sys.argv:
        (ROOT / "docs" / "performance-proxy.md").write_text(text)
    print(text)
    say("done")


def latency(us):
    return f"{us:.1f}" if us < 1e6 else "half were lost"


def report(results, two, many, pcap, about, fed, grown, milliseconds, quiet, busy):
    revision = run("git", "-C", ROOT, "rev-parse", "--short", "HEAD", check=False).strip()
    pcap_rows = [[who, *(cell for family in ("ARP", "NS") for cell in (
        f"{median([x[0] for x in pcap[who, family]]):,.0f}", latency(median([x[1] for x in pcap[who, family]]))))]
        for who in ("minimal", "peerland")]
    flood_rows = [[what, f"{a['lat_us']['p50']:.0f}", f"{a['lat_us']['p99']:.0f}", f"{a['missing']}",
                   f"{b['lat_us']['p50']:.0f}", f"{b['lat_us']['p99']:.0f}", f"{b['missing']}"]
                  for what, a, b in (("known address", quiet[0], busy[0]), ("unknown address: flooded, answered by its owner", quiet[1], busy[1]))]
    return f"""# Proxy ARP/ND: speed

Made by `bench/proxy.sh --write` from revision {revision}: Linux {platform.release().split("-")[0]}, {os.cpu_count()} CPUs, medians of
{ROUNDS} rounds of {SECONDS} s, all of one table in turns. The generator writes to a veth pair, so the whole path runs inside
its send call and costs are those of one CPU, sending included; go by ratios, absolute figures move with the machine.

## Known targets, {N:,} IPv4 and {N:,} IPv6 bindings, one port asks as fast as it can

3 member ports. "minimal": a program that looks up the target and turns the frame round, no check, no counter but one. peerlan
checks EtherType, source MAC, sender and its binding, and counts by port, reason and binding. Its `answers` limit is off.

{hook_table(results, 3, two)}

64 member ports: neigh_suppress floods what it has answered.

{hook_table(results, 64, many)}

## Responder in user space (`responder: pcap`), the minimal one by libpcap beside it

{table(["responder", "ARP: replies/s", "p50 us at 1000/s", "NS: replies/s", "p50 us at 1000/s"], pcap_rows)}

## Others while one port asks for 100 000 unknown addresses a second

Resolution by another member, microseconds. Profile dynamic, policy `peering`.

{table(["target", "quiet: p50", "p99", "lost", "flood: p50", "p99", "lost"], flood_rows)}

## Size and changes

{table(["what", "figure"], [
    ["maps, octets a binding", f"{about['map_bytes'] / about['bindings']:,.0f} (preallocated for 2 x 262,144)"],
    ["daemon, octets a binding learned by BGP", f"{grown * 1024 / (2 * N):,.0f} (its route, its MAC and its binding)"],
    [f"{2 * N:,} bindings by BGP, from the first UPDATE to the last answer", f"{fed:.1f} s"],
    ["one binding written, us", f"p50 {about['change_p50_us']:.1f}, p99 {about['change_p99_us']:.1f}"],
    ["UPDATE received to entry in the map, ms", f"p50 {quantile(milliseconds, 0.5):.2f}, p99 {quantile(milliseconds, 0.99):.2f}"],
])}
"""


if __name__ == "__main__":
    main()
