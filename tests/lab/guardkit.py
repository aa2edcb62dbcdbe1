# SPDX-License-Identifier: GPL-2.0-or-later
"""One PE with eBPF programs in a network namespace of its own: member ports m1, m2 ... whose other ends h1, h2 ...
are raw sockets here, and an underlay device u0 behind which scripted PEs send VXLAN. For what needs a port's
security and no topology."""
import contextlib
import json
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import labkit
import test_differential as bgp
from labkit import BUILD, wait_for
from scripted import AS, DAEMON, KEEPALIVE, Namespace, Reflector

REMOTE, ROGUE = "172.31.0.2", "172.31.0.66"  # VTEPs: one that the control plane knows, one that it does not
SPEAKER = "10.0.0.2"  # the BGP session of the former
U0, U1 = "02:00:00:00:f0:00", "02:00:00:00:f0:01"
BROADCAST = "ff:ff:ff:ff:ff:ff"
VNI = 100


def octets(mac):
    return bytes.fromhex(mac.replace(":", ""))


def mac(n):
    return f"02:00:00:00:00:{n:02x}"


def ip4(n):
    return f"192.0.2.{n}"


def ip6(n):
    return f"2001:db8:1::{n:x}"


def ethernet(to, source, kind, payload=b""):
    return (octets(to) + octets(source) + struct.pack("!H", kind) + payload).ljust(60, b"\0")


def arp(source, sender, target, operation=1, to=BROADCAST, target_mac="00:00:00:00:00:00"):
    return ethernet(to, source, 0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + octets(source)
                    + socket.inet_aton(sender) + octets(target_mac) + socket.inet_aton(target))


def internet_checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def solicitation(source, sender, target):
    to = socket.inet_pton(socket.AF_INET6, target)
    group = bytes.fromhex("ff0200000000000000000001ff") + to[13:]
    body = b"\x87\0\0\0\0\0\0\0" + to + b"\1\1" + octets(source)
    address = socket.inet_pton(socket.AF_INET6, sender)
    total = internet_checksum(address + group + struct.pack("!II", len(body), 58) + body)
    body = body[:2] + struct.pack("!H", total) + body[4:]
    header = struct.pack("!IHBB", 0x60000000, len(body), 58, 255) + address + group
    return octets("33:33:ff:" + ":".join(f"{b:02x}" for b in to[13:])) + octets(source) + b"\x86\xdd" + header + body


def udp4(source_mac, to, source, destination, port=4999, content=b"\0" * 22):
    udp = struct.pack("!HHHH", port, port, 8 + len(content), 0) + content
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, socket.inet_aton(source),
                         socket.inet_aton(destination))
    header = header[:10] + struct.pack("!H", internet_checksum(header)) + header[12:]
    return ethernet(to, source_mac, 0x0800, header + udp)


def vxlan(frame, vtep=REMOTE, vni=VNI, to=DAEMON):
    """The packet in which a PE sends a frame, as it arrives at u0."""
    body = struct.pack("!II", 0x08000000, vni << 8) + frame
    udp = struct.pack("!HHHH", 50000, 4789, 8 + len(body), 0) + body
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, socket.inet_aton(vtep),
                         socket.inet_aton(to))
    header = header[:10] + struct.pack("!H", internet_checksum(header)) + header[12:]
    return octets(U0) + octets(U1) + b"\x08\0" + header + udp


class OtherPe(bgp.Observer):
    """The control plane of REMOTE: a multicast route, and routes of MACs."""
    HOP = socket.inet_aton(REMOTE)

    def rd(self):
        return struct.pack("!H4sH", 1, self.HOP, VNI)

    def announce_flood(self):
        route = bgp.nlri(3, self.rd() + b"\0\0\0\0\x20" + self.HOP)
        pmsi = bgp.attribute(0xc0, 22, b"\0\6" + VNI.to_bytes(3, "big") + self.HOP)
        self.send(bgp.update(bgp.reach(route, hop=self.HOP), bgp.USUAL, pmsi))

    def announce_mac(self, address):
        route = bgp.nlri(2, self.rd() + b"\0" * 10 + b"\0\0\0\0\x30" + octets(address) + b"\0" + VNI.to_bytes(3, "big"))
        self.send(bgp.update(bgp.reach(route, hop=self.HOP), bgp.USUAL))

    def keep(self):
        self.send(b"", KEEPALIVE)


class Pe(Reflector):
    """`ports`: lines of YAML, one port each, without the dash; {n} stands for its number. `node`: further lines of
    the top level, `domain`: of the broadcast domain."""

    def __init__(self, name, ports, node="", domain="", profile="static"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peerlan-guard-"))
        self.pins = self.folder / "bpf"
        self.pins.mkdir()
        subprocess.run(["mount", "-t", "bpf", "bpf", str(self.pins)], check=True)
        self.net = Namespace(name)
        self.process = None
        self.settings = self.folder / "peerland.yaml"
        self.sockets = {}
        self.node, self.domain, self.profile = node, domain, profile
        self.ports = dict(ports)
        for n in self.ports:
            self.add_link(n)
        self.link("u0", "u1", U0, U1)
        self.net.run("ip", "addr", "add", "172.31.0.1/24", "dev", "u0")
        for vtep in (REMOTE, ROGUE):
            self.net.run("ip", "neigh", "replace", vtep, "lladdr", U1, "dev", "u0", "nud", "permanent")
        self.open("u1")
        self.write()
        import atexit
        atexit.register(self.stop)
        self.start()
        wait_for("the ports", lambda: all(p["state"] in ("up", "core", "quarantine") for p in self.show("ports")))

    def link(self, one, other, one_mac=None, other_mac=None):
        self.net.run("ip", "link", "add", one, *(["address", one_mac] if one_mac else []), "type", "veth", "peer", "name",
                     other, *(["address", other_mac] if other_mac else []))
        for device in (one, other):
            self.net.run("sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1")
            self.net.run("ip", "link", "set", device, "up")

    def add_link(self, n):
        self.link(f"m{n}", f"h{n}", other_mac=mac(n))
        self.open(f"h{n}")

    def open(self, device):
        raw = self.net.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        raw.bind((device, 3))  # all protocols, in network order
        raw.setblocking(False)
        if device in self.sockets:
            self.sockets[device].close()
        self.sockets[device] = raw

    def text(self):
        ports = "".join(f"      - {{ interface: m{n}, {text.format(n=n, mac=mac(n), ip4=ip4(n), ip6=ip6(n))} }}\n"
                        for n, text in self.ports.items())
        return (f"node: pe\nrouter-id: {DAEMON}\nas: {AS}\nvtep: {DAEMON}\ncontrol: {{ socket: {self.folder}/sock }}\n"
                f"pin-directory: {self.pins}/pe\nunderlay: {{ interfaces: [u0] }}\nreport-interval: 10s\n"
                f"bgp:\n  listen: [{{ address: {DAEMON} }}]\n  selection-deferral: 0\n  neighbors:\n"
                f"    - {{ address: {SPEAKER}, as: {AS}, passive: true, connect-retry: 1, graceful-restart: false }}\n"
                f"{self.node}broadcast-domains:\n  - name: peering\n    vni: {VNI}\n    bridge: br100\n    vxlan: vx100\n"
                f"    profile: {self.profile}\n    prefixes: [192.0.2.0/24, '2001:db8:1::/64']\n"
                f"{self.domain}    ports:\n{ports}")

    def write(self):
        self.settings.write_text(self.text())

    def peerlan(self, *argv, check=True):
        r = subprocess.run([BUILD / "bin" / "peerlan", "-s", self.folder / "sock", *map(str, argv)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if check and r.returncode:
            raise AssertionError(f"peerlan {argv}: exit {r.returncode}: {r.stdout}{r.stderr}")
        return r

    def reload(self):
        self.write()
        return self.peerlan("reload", "--force").stdout

    def port(self, name):
        return next((p for p in self.show("ports") if p["port"] == name), None)

    def state(self, name):
        return self.port(name)["state"]

    def wait_state(self, name, state, timeout=15):
        return wait_for(f"{name} to be {state}", lambda: (p := self.port(name)) and p["state"] == state and p, timeout)

    def drops(self, name, direction, key="dropped"):
        """Frames by reason."""
        out = {}
        for row in self.port(name)["frames"]:
            if row[key] and row["direction"] == direction:
                out[row["reason"]] = out.get(row["reason"], 0) + row["packets"]
        return out

    # --- traffic
    def send(self, n, *frames):
        device = self.sockets[n if isinstance(n, str) else f"h{n}"]
        for frame in frames:
            for _ in range(100):
                try:
                    device.send(frame)
                    break
                except (BlockingIOError, OSError):
                    time.sleep(0.001)

    def received(self, n, wanted=lambda frame: True, wait=0.3):
        """All frames that came to a host, until for `wait` seconds nothing more did."""
        device, frames = self.sockets[n if isinstance(n, str) else f"h{n}"], []
        while select.select([device], [], [], wait)[0]:
            with contextlib.suppress(OSError):  # nothing more, or the link went down
                while True:
                    frame, (_, _, kind, _, _) = device.recvfrom(65536)
                    if kind != socket.PACKET_OUTGOING and wanted(frame):
                        frames.append(frame)
        return frames

    def drain(self):
        for device in self.sockets:
            self.received(device, wait=0)

    def storm(self, n, kind, seconds=2, rate=20000, source=None):
        """peerlan-frames at a host; what it says it sent."""
        r = self.net.run(BUILD / "bin" / "peerlan-frames", "send", kind, f"h{n}", "--mac", source or mac(n), "--ip", ip4(n),
                         "--ip6", ip6(n), "--rate", rate, "--seconds", seconds)
        return json.loads(r.stdout)["sent"]

    def named_frames(self, kinds, n):
        """The frame of each name, as a host with the addresses of number n sends it."""
        self.link("x0", "x1")
        self.open("x1")
        out = {}
        for kind in kinds:
            self.received("x1", wait=0)
            self.net.run(BUILD / "bin" / "peerlan-frames", "send", kind, "x0", "--mac", mac(n), "--ip", ip4(n), "--ip6",
                         ip6(n), "--count", 1)
            out[kind] = next(f for f in self.received("x1") if f[6:12] == octets(mac(n)))
        self.net.run("ip", "link", "del", "x0")
        self.sockets.pop("x1").close()
        return out

    def attachments(self, device):
        """The pinned links of a device, each as the kernel's own object: another one is another number."""
        index = self.net.run("cat", f"/sys/class/net/{device}/ifindex").stdout.strip()
        return {p.name: p.stat().st_ino for p in self.pins.rglob(f"{index}_*")}

    def stop(self):
        for raw in self.sockets.values():
            raw.close()
        self.sockets = {}
        super().stop()
        subprocess.run(["umount", str(self.pins)], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)
