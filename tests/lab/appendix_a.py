# SPDX-License-Identifier: GPL-2.0-or-later
"""The 22 cases of an access port that asks: what the bridge's neigh_suppress makes of them and
what peerlan does, side by side. Two members, h1 and h2, at one PE, and the core behind it: a bridge port with
neigh_suppress, or for peerlan a VXLAN tunnel with a BGP speaker at its end. `python3 appendix_a.py` prints both columns.

Whoever has an address: h1 10.0.0.1, h2 10.0.0.2, behind the core 10.0.0.9 and 2001:db8::9 (a router) and 2001:db8::7 (a
host), nowhere to be seen 10.0.0.8."""
import atexit
import contextlib
import ctypes
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lab"))
import labkit  # noqa: E402
from labkit import BUILD, wait_for  # noqa: E402

libc = ctypes.CDLL(None, use_errno=True)
ALL = b"\xff" * 6
H1, H2, FAR, HOST, GONE = (bytes([2, 0, 0, 0, 0, n]) for n in (1, 2, 9, 7, 8))
FORGED = bytes([2, 0, 0, 0, 0xba, 0xd0])
NODES = bytes.fromhex("333300000001")


# --- frames
def ip4(n):
    return socket.inet_aton(n if isinstance(n, str) else f"10.0.0.{n}")


def ip6(n):
    return socket.inet_pton(socket.AF_INET6, n if isinstance(n, str) else f"2001:db8::{n}")


def arp(spa, tpa, op=1, sha=H1, to=ALL, source=H1, tha=bytes(6)):
    return to + source + struct.pack("!HHHBBH", 0x806, 1, 0x800, 6, 4, op) + sha + spa + tha + tpa + bytes(18)


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def icmp6(source, destination, message, to, hop_limit=255, wrong_sum=False, ethernet=H1):
    pseudo = source + destination + struct.pack("!II", len(message), 58)
    total = checksum(pseudo + message) ^ (0x5555 if wrong_sum else 0)
    return (to + ethernet + b"\x86\xdd\x60\0\0\0" + struct.pack("!HBB", len(message), 58, hop_limit) + source + destination
            + message[:2] + struct.pack("!H", total) + message[4:])


def group_of(target):
    return ip6("ff02::1:ff00:0")[:13] + target[13:], b"\x33\x33\xff" + target[13:]


def ns(target, source=ip6(1), options=None, unicast=None, **more):
    group, to = group_of(target) if unicast is None else (target, unicast)
    options = b"\x01\x01" + H1 if options is None else options
    return icmp6(source, group, b"\x87\0\0\0\0\0\0\0" + target + options, to, **more)


def na(target, flags, destination=ip6("ff02::1"), to=NODES):
    return icmp6(target, destination, bytes([136, 0, 0, 0, flags, 0, 0, 0]) + target + b"\x02\x01" + H1, to)


NONCE = b"\x0e\x01abcdef"
UNKNOWN_OPTION = b"\xc8\x01" + bytes(6)


# --- what came back
class Answer:
    """An ARP reply or a neighbor advertisement that h1 got."""

    def __init__(self, frame):
        self.frame = frame
        self.arp = frame[12:14] == b"\x08\x06"
        if self.arp:
            self.mac, self.ip, self.tha, self.tpa = frame[22:28], frame[28:32], frame[32:38], frame[38:42]
        else:
            self.ip, self.mac, flags = frame[62:78], frame[80:86], frame[58]
            self.router, self.solicited, self.override = (bool(flags & b) for b in (0x80, 0x40, 0x20))
            self.valid = (frame[21] == 255 and frame[22:38] == self.ip
                          and checksum(frame[22:54] + struct.pack("!II", len(frame) - 54, 58) + frame[54:]) == 0)

    @staticmethod
    def is_one(frame):
        return (frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\x02") or (
            frame[12:14] == b"\x86\xdd" and frame[20] == 58 and len(frame) >= 86 and frame[54] == 136)


class Seen:
    def __init__(self, at_h1, h2, core):
        self.answers = [Answer(f) for f in at_h1 if Answer.is_one(f)]
        self.h2, self.core = h2, core

    @property
    def quiet(self):
        return not self.h2 and not self.core

    def one(self):
        return self.answers[0] if len(self.answers) == 1 else None

    def text(self):
        return [("yes" if self.answers else "no"), "yes" if self.h2 else "no", "yes" if self.core else "no"]


def answered4(mac, ip, prober=False):
    def right(s):
        a = s.one()
        return bool(a and s.quiet and a.mac == mac and a.frame[6:12] == mac and a.frame[:6] == H1 and a.ip == ip
                    and a.tha == H1 and a.tpa == (bytes(4) if prober else ip4(1)))
    return right


def answered6(mac, ip, router, dad=False):
    def right(s):
        a = s.one()
        to = (NODES, ip6("ff02::1")) if dad else (H1, ip6(1))
        return bool(a and s.quiet and a.valid and a.mac == mac and a.frame[6:12] == mac and a.ip == ip and a.router == router
                    and a.solicited != dad and a.override and (a.frame[:6], a.frame[38:54]) == to)
    return right


silence = lambda s: not s.answers and s.quiet
to_core_only = lambda s: not s.answers and not s.h2 and bool(s.core)
to_all = lambda s: not s.answers and bool(s.h2) and bool(s.core)
# letter, what, frames, what is right by RFC 9161 and its kin, which of our rows says so
CASES = [
    ("A", "broadcast ARP, known remote", [arp(ip4(1), ip4(9))], answered4(FAR, ip4(9)), "B1"),
    ("B", "unicast ARP, known remote", [arp(ip4(1), ip4(9), to=FAR)], to_core_only, "B8"),
    ("C", "ARP probe, known remote", [arp(bytes(4), ip4(9))], answered4(FAR, ip4(9), True), "B7 B17"),
    ("C2", "ARP probe, unknown address", [arp(bytes(4), ip4(77))], to_all, "B21"),
    ("D", "gratuitous ARP, request and reply", [arp(ip4(1), ip4(1)), arp(ip4(1), ip4(1), op=2, tha=H1)],
     lambda s: not s.answers and len(s.core) == 2 and len(s.h2) == 2, "E6"),
    ("E", "ARP, unassigned address", [arp(ip4(1), ip4("10.0.1.200"))], silence, "0.3-9"),
    ("F", "ARP, known at another port", [arp(ip4(1), ip4(2))], answered4(H2, ip4(2)), "B6"),
    ("G", "NS, known router and known host", [ns(ip6(9)), ns(ip6(7))], None, "B1 B9"),
    ("H", "unicast NS", [ns(ip6(9), unicast=FAR)], to_core_only, "B8"),
    ("I", "NS with hop limit 64", [ns(ip6(9), hop_limit=64)], silence, "B12"),
    ("J", "NS with a wrong checksum", [ns(ip6(9), wrong_sum=True)], silence, "B12"),
    ("K", "DAD, known address", [ns(ip6(9), source=bytes(16), options=b"")], answered6(FAR, ip6(9), True, True), "B7 B10"),
    ("K2", "DAD, unknown address", [ns(ip6("2001:db8::77"), source=bytes(16), options=b"")], to_all, "B21"),
    ("K3", "DAD with a nonce, known address", [ns(ip6(9), source=bytes(16), options=NONCE)],
     answered6(FAR, ip6(9), True, True), "B16"),
    ("L", "NA to all nodes, S clear", [na(ip6(1), 0x20)], lambda s: not s.answers and bool(s.core), "B22 E6"),
    ("L2", "unicast NA", [na(ip6(1), 0x60, ip6(9), FAR)], to_core_only, "A13"),
    ("N", "NS with an unknown option, policy discard", [ns(ip6(9), options=b"\x01\x01" + H1 + UNKNOWN_OPTION)], silence,
     "B15"),
    ("O", "NS, forged link-layer address", [ns(ip6(9), options=b"\x01\x01" + FORGED)], silence, "B26"),
    ("P", "NS, target is a group", [ns(ip6("ff02::77"))], silence, "B12"),
    ("Q", "DAD with a link-layer address", [ns(ip6(9), source=bytes(16))], silence, "B12"),
    ("R", "ARP, Ethernet source is not the sender", [arp(ip4(1), ip4(9), sha=FORGED)], silence, "B26"),
    ("S", "neighbour known, MAC not in the FDB", [arp(ip4(1), ip4(8))], to_all, "D8"),
]


def both_kinds(s):
    """G: the router's advertisement and the host's."""
    if len(s.answers) != 2 or not s.quiet:
        return False
    alone = [Seen([a.frame], [], []) for a in s.answers]
    return answered6(FAR, ip6(9), True)(alone[0]) and answered6(HOST, ip6(7), False)(alone[1])


def right(case, seen):
    return (case[3] or both_kinds)(seen)


# --- wires
class Tap:
    """A raw socket on a device of a namespace."""

    def __init__(self, ns_name, device):
        here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{ns_name}", os.O_RDONLY)
        assert libc.setns(there, 0) == 0
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
            self.socket.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
            self.socket.bind((device, 3))
        finally:
            assert libc.setns(here, 0) == 0
            os.close(here)
            os.close(there)

    def send(self, frame):
        self.socket.send(frame)

    def receive(self, timeout):
        self.socket.settimeout(timeout if timeout > 0 else 0.000001)
        try:
            return self.socket.recv(65536)
        except (socket.timeout, BlockingIOError):
            return None

    def until(self, wanted, timeout=10):
        """Frames that came before the wanted one."""
        out, deadline = [], time.monotonic() + timeout
        while True:
            frame = self.receive(deadline - time.monotonic())
            if frame is None:
                raise AssertionError(f"a frame that must come did not come; before it: {[f.hex() for f in out]}")
            if wanted(frame):
                return out
            out.append(frame)

    def drain(self):
        out = []
        while (frame := self.receive(0)) is not None:
            out.append(frame)
        return out


class CoreTap(Tap):
    """Frames in the tunnel."""

    def receive(self, timeout):
        deadline = time.monotonic() + timeout
        while True:
            frame = super().receive(max(deadline - time.monotonic(), 0))
            if frame is None:
                return None
            if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[36:38] == struct.pack("!H", 4789):
                return frame[50:]


class Wire:
    """The PE's bridge with h1 and h2, and a link to the core."""

    def __init__(self, kind, core_device="c0"):
        self.names = {n: f"plaa-{kind}{os.getpid()}-{n}" for n in ("pe", "h1", "h2", "core")}
        atexit.register(self.down)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peerlan-appendix-"))
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for n in self.names:
            self.run(n, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
            self.run(n, "ip", "link", "set", "lo", "up")
        self.run("pe", "ip", "link", "add", "br0", "address", "02:00:00:00:be:00", "type", "bridge", "mcast_snooping", "0")
        self.run("pe", "ip", "link", "set", "br0", "up")
        for n, device, mac in (("h1", "m1", H1), ("h2", "m2", H2), ("core", core_device, None)):
            self.run("pe", "ip", "link", "add", device, "type", "veth", "peer", "name", "e0", "netns", self.names[n])
            if mac:
                self.run(n, "ip", "link", "set", "e0", "address", mac.hex(":"))
                self.run(n, "ip", "link", "set", "e0", "arp", "off")
                self.run("pe", "ip", "link", "set", device, "master", "br0")
            self.run(n, "ip", "link", "set", "e0", "up")
            self.run("pe", "ip", "link", "set", device, "up")

    def run(self, n, *argv, check=True):
        r = subprocess.run(["nsenter", f"--net=/run/netns/{self.names[n]}", *map(str, argv)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
        if check and r.returncode:
            raise AssertionError(f"{argv}: {r.stderr or r.stdout}")
        return r.stdout

    def taps(self, core):
        self.h1, self.h2 = Tap(self.names["h1"], "e0"), Tap(self.names["h2"], "e0")
        self.core = core(self.names["core"], "e0")

    def settle(self, *devices):
        for device in devices:
            wait_for(f"{device} forwards", lambda d=device: "state forwarding" in self.run("pe", "bridge", "link", "show", "dev",
                                                                                            d))

    def case(self, case):
        for tap in (self.h1, self.h2, self.core):
            tap.drain()
        for frame in case[2]:
            self.h1.send(frame)
        h2, core = self.fence()
        ours = set(case[2])
        return Seen(self.h1.drain(), [f for f in h2 if f in ours], [f for f in core if f in ours])

    def down(self):
        atexit.unregister(self.down)
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


class Suppress(Wire):
    """Linux: neigh_suppress at the port to the core."""

    def __init__(self):
        super().__init__("k")
        self.run("pe", "ip", "link", "set", "c0", "master", "br0")
        self.run("pe", "sysctl", "-qw", "net.ipv6.conf.br0.disable_ipv6=0", "net.ipv6.conf.br0.accept_dad=0")
        self.run("pe", "bridge", "link", "set", "dev", "c0", "neigh_suppress", "on")
        for mac, device in ((FAR, "c0"), (HOST, "c0"), (H2, "m2")):
            self.run("pe", "bridge", "fdb", "add", mac.hex(":"), "dev", device, "master", "static")
        for address, mac, router in (("10.0.0.9", FAR, False), ("10.0.0.2", H2, False), ("10.0.0.8", GONE, False),
                                     ("2001:db8::9", FAR, True), ("2001:db8::7", HOST, False)):
            self.run("pe", "ip", "neigh", "add", address, "lladdr", mac.hex(":"), "dev", "br0", "nud", "permanent",
                     *(["router"] if router else []))
        self.settle("m1", "m2", "c0")
        self.taps(Tap)

    def fence(self):
        # A broadcast that is no ARP goes everywhere, behind what was sent before.
        fence = ALL + H1 + b"\x88\xb5" + bytes(46)
        self.h1.send(fence)
        return [tap.until(lambda f: f == fence) for tap in (self.h2, self.core)]


# BGP: enough to be a PE
def message(kind, body=b""):
    return b"\xff" * 16 + struct.pack("!HB", 19 + len(body), kind) + body


def update(nlri, communities=""):
    extended = bytes.fromhex("0002fde800000064" "030c000000000008" + communities)
    reach = struct.pack("!HBB", 25, 70, 4) + socket.inet_aton("192.0.2.2") + b"\0" + nlri
    attributes = (bytes.fromhex("40010100" "400200" "40050400000064") + bytes([0xc0, 16, len(extended)]) + extended)
    if nlri[0] == 3:  # ingress replication
        attributes += bytes.fromhex("c01609" "00" "06" "000064") + socket.inet_aton("192.0.2.2")
    attributes += struct.pack("!BBH", 0x90, 14, len(reach)) + reach
    return message(2, struct.pack("!HH", 0, len(attributes)) + attributes)


def distinguisher():
    return struct.pack("!H4sH", 1, socket.inet_aton("192.0.2.2"), 100)


def imet():
    body = distinguisher() + bytes(4) + b"\x20" + socket.inet_aton("192.0.2.2")
    return bytes([3, len(body)]) + body


def mac_ip(mac, ip):
    body = distinguisher() + bytes(10) + bytes(4) + b"\x30" + mac + bytes([len(ip) * 8]) + ip + b"\0\0\x64"
    return bytes([2, len(body)]) + body


class Speaker:
    """The other PE's BGP, from inside the core's namespace."""

    def __init__(self, wire):
        name = wire.names["core"]
        here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{name}", os.O_RDONLY)
        try:
            deadline = time.monotonic() + 20
            while True:
                assert libc.setns(there, 0) == 0
                try:
                    self.socket = socket.socket()
                finally:
                    assert libc.setns(here, 0) == 0
                try:
                    self.socket.connect(("192.0.2.1", 179))
                    break
                except OSError:
                    self.socket.close()
                    assert time.monotonic() < deadline, "no BGP session"
                    time.sleep(0.1)
        finally:
            os.close(here)
            os.close(there)
        capabilities = (struct.pack("!BBHBB", 1, 4, 25, 0, 70) + struct.pack("!BBI", 65, 4, 65000)
                        + struct.pack("!BBHHBB", 64, 6, 60, 25, 70, 0x80))
        parameter = struct.pack("!BB", 2, len(capabilities)) + capabilities
        self.socket.sendall(message(1, struct.pack("!BHH4sB", 4, 65000, 90, socket.inet_aton("192.0.2.2"), len(parameter))
                                    + parameter) + message(4))
        self.socket.settimeout(60)
        seen = b""
        while message(4) not in seen:
            got = self.socket.recv(65536)
            assert got, "BGP session refused"
            seen += got
        self.socket.settimeout(None)
        self.ended = threading.Event()
        self.reader = threading.Thread(target=self.keep, daemon=True)
        self.reader.start()

    def keep(self):
        last = time.monotonic()
        while not self.ended.is_set():
            if select.select([self.socket], [], [], 0.2)[0] and not self.socket.recv(65536):
                return
            if time.monotonic() - last > 20:
                last = time.monotonic()
                self.socket.sendall(message(4))

    def send(self, *messages):
        self.socket.sendall(b"".join(messages))

    def close(self):
        self.ended.set()
        self.reader.join()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


CONFIG = """node: pe
router-id: 192.0.2.1
as: 65000
vtep: 192.0.2.1
control: {{ socket: {folder}/sock }}
pin-directory: {pins}
bgp:
  selection-deferral: 0s
  listen: [{{ address: 192.0.2.1 }}]
  groups: {{ pes: {{ as: 65000, role: peer, passive: true, graceful-restart: true, restart-time: 120 }} }}
  neighbors: [{{ address: 192.0.2.2, group: pes }}]
policies:
  lab:
    ingress: {{ arp: {limit}, nd: {limit}, broadcast: drop, multicast: drop, unknown-unicast: drop }}
    egress: {{ arp: unlimited, nd: unlimited }}
    encap: {{ arp: unlimited, nd: unlimited }}
broadcast-domains:
  - name: lan
    vni: 100
    bridge: br0
    vxlan: vx0
    profile: hybrid
    responder: {responder}
    prefixes: [10.0.0.0/21, "2001:db8::/64"]
    unknown-options: discard
    unassigned:
      - {{ prefix: 10.0.1.0/24, policy: drop }}
      - {{ prefix: 10.0.4.0/22, policy: drop }}
    policy: lab
    ports:
      - {{ interface: m1, name: One, as: 64501, macs: ["02:00:00:00:00:01"], addresses: [10.0.0.1, "2001:db8::1"],
          attach: {attach} }}
      - {{ interface: m2, name: Two, as: 64502, macs: ["02:00:00:00:00:02"],
          addresses: [10.0.0.2, "2001:db8::2"] }}
      - {{ interface: m3, name: Three, as: 64503, macs: ["02:00:00:00:00:08"], addresses: [10.0.0.8] }}  # no such device
"""


class Peerlan(Wire):
    """The daemon, with a tunnel to a PE that is a script."""

    def __init__(self, responder="ebpf", attach="tc", limit="unlimited", edit=lambda text: text):
        super().__init__("p", "u0")
        self.pins = f"/sys/fs/bpf/plaa{os.getpid()}"
        self.run("pe", "ip", "addr", "add", "192.0.2.1/24", "dev", "u0")
        self.run("core", "ip", "addr", "add", "192.0.2.2/24", "dev", "e0")
        config = self.folder / "peerland.yaml"
        config.write_text(edit(CONFIG.format(folder=self.folder, pins=self.pins, responder=responder, attach=attach, limit=limit)))
        self.daemon, self.speaker = None, None
        with open(self.folder / "log", "wb") as log:
            self.daemon = subprocess.Popen(["nsenter", f"--net=/run/netns/{self.names['pe']}", BUILD / "bin" / "peerland",
                                            "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.speaker = Speaker(self)
        self.speaker.send(update(imet()), update(mac_ip(FAR, ip4(9))), update(mac_ip(FAR, ip6(9)), "0608030000000000"),
                          update(mac_ip(HOST, ip6(7)), "0608020000000000"),
                          message(2, bytes.fromhex("00000006800f03001946")))
        self.settle("m1", "m2", "vx0")
        self.taps(CoreTap)
        # Members are known when they have been seen.
        self.h2.send(arp(ip4(2), ip4(2), sha=H2, source=H2))
        self.h2.send(icmp6(ip6(2), ip6("ff02::1"), bytes([136, 0, 0, 0, 0x20, 0, 0, 0]) + ip6(2) + b"\x02\x01" + H2, NODES,
                           ethernet=H2))
        self.h1.send(arp(ip4(1), ip4(1)))
        self.h1.send(na(ip6(1), 0x20))
        wait_for("answers", lambda: all(self.asked(a) for a in (9, 2)) and self.asked6(9) and self.asked6(7), 20)
        self.fence()

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def asked(self, n, spa=1):
        self.h1.drain()
        self.h1.send(arp(ip4(spa), ip4(n)))
        frame = self.h1.receive(0.2)
        return frame is not None and Answer.is_one(frame)

    def asked6(self, n):
        self.h1.drain()
        self.h1.send(ns(ip6(n)))
        frame = self.h1.receive(0.2)
        return frame is not None and Answer.is_one(frame)

    def fence(self):
        # A probe for an address that nobody has goes to all, by way of the daemon, in its turn.
        self.count = getattr(self, "count", 0) + 1
        fence = arp(bytes(4), ip4(f"10.0.2.{self.count % 250 + 1}"))
        self.h1.send(fence)
        return [tap.until(lambda f: f == fence) for tap in (self.h2, self.core)]

    def show(self, *what):
        return subprocess.run([BUILD / "bin" / "peerlan", "-s", self.folder / "sock", *what], stdout=subprocess.PIPE, text=True,
                              check=False).stdout

    def down(self):
        if getattr(self, "speaker", None):
            self.speaker.close()
        if getattr(self, "daemon", None):
            if self.daemon.poll() is None:
                self.daemon.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.daemon.wait(20)
            self.daemon.kill()
            self.daemon.wait()
            self.run("pe", BUILD / "bin" / "peerland", "--teardown", self.folder / "peerland.yaml", check=False)
        subprocess.run(["rm", "-rf", getattr(self, "pins", "/nonexistent")], check=False)
        super().down()


@contextlib.contextmanager
def up(kind, *arguments, **more):
    wire = None
    try:
        wire = kind(*arguments, **more)
        yield wire
    finally:
        if wire:
            wire.down()


def column(kind, *arguments, **more):
    with up(kind, *arguments, **more) as wire:
        return {case[0]: wire.case(case) for case in CASES}


def main():
    columns = [("neigh_suppress", column(Suppress)), ("peerlan, eBPF", column(Peerlan)),
               ("peerlan, pcap", column(Peerlan, responder="pcap"))]
    head = "".join(f"  {name:^29}" for name, _ in columns)
    print(f"{'':46}{head}\n{'case':46}" + f"  {'reply':>5} {'h2':>4} {'core':>5}  {'':10}  " * len(columns))
    totals = [0] * len(columns)
    for case in CASES:
        line = f"{case[0]:3} {case[1]:42}"
        for i, (_, seen) in enumerate(columns):
            good = right(case, seen[case[0]])
            totals[i] += good
            reply, h2, core = seen[case[0]].text()
            line += f"  {reply:>5} {h2:>4} {core:>5}  {'ok' if good else 'wrong: ' + case[4].split()[0]:10}  "
        print(line.rstrip())
    print(f"\nright of {len(CASES)}: " + ", ".join(f"{name} {total}" for (name, _), total in zip(columns, totals)))
    return 0 if all(total == len(CASES) for total in totals[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
