# SPDX-License-Identifier: GPL-2.0-or-later
"""The 22 cases of appendix_a.py, and what of proxy ARP/ND only wires show: MLD snooping, the PE's own stack, no IPv6 in
the PE, floods and sweeps, BGP that is gone for a while, a client that never reads."""
import collections
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import unittest

import labkit
from labkit import wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import appendix_a as a  # noqa: E402
from appendix_a import H1, H2, FAR, NODES, arp, icmp6, ip4, ip6, ns  # noqa: E402

NETWORKD = "/lib/systemd/systemd-networkd"


class Columns(unittest.TestCase):
    """Our column is right in every case, whoever answers."""

    def judge(self, **how):
        seen = a.column(a.Peerlan, **how)
        for case in a.CASES:
            with self.subTest(case=case[0], what=case[1], row=case[4]):
                self.assertTrue(a.right(case, seen[case[0]]), seen[case[0]].text())


@labkit.needs("peerland", "peerlan")
class Peerlan(Columns):
    def test_the_22_cases(self):
        self.judge()

    def test_the_22_cases_with_pcap(self):
        self.judge(responder="pcap")


@labkit.needs("peerland", "peerlan")
class Wires(unittest.TestCase):
    def lab(self, **how):
        wire = a.Peerlan(**how)
        self.addCleanup(wire.down)
        return wire

    def heard(self, frames, kinds=(b"\x08\x06", b"\x86\xdd")):
        return [f for f in frames if f[12:14] in kinds]

    def answered(self, wire, *frames):
        """How many answers h1 got for its frames."""
        wire.h1.drain()
        for frame in frames:
            wire.h1.send(frame)
        wire.fence()
        return sum(a.Answer.is_one(f) for f in wire.h1.drain())

    def test_b24_mld_snooping(self):
        wire = self.lab()
        wire.run("pe", "ip", "link", "set", "br0", "type", "bridge", "mcast_snooping", "1", "mcast_querier", "1")
        self.assertEqual(self.answered(wire, ns(ip6(9)), ns(ip6(9), source=bytes(16), options=b"")), 2)
        # Who probes for the same address hears of it, member of a group or not.
        wire.h2.drain(), wire.core.drain()
        probe = ns(ip6("2001:db8::55"), source=bytes(16), options=b"")
        wire.h1.send(probe)
        h2, core = wire.fence()
        self.assertIn(probe, h2)
        self.assertIn(probe, core)

    def test_b25_own_address(self):
        wire = self.lab(edit=lambda text: text.replace("    policy: lab\n", "    policy: lab\n    pe-addresses: [10.0.0.254]\n"))
        wire.run("pe", "ip", "addr", "add", "10.0.0.254/21", "dev", "br0")
        wait_for("the PE answers for its address", lambda: self.answered(wire, arp(ip4(1), ip4(254))) > 0)
        for _ in range(5):
            self.assertEqual(self.answered(wire, arp(ip4(1), ip4(254))), 1)
        h2, core = wire.fence()
        self.assertNotIn(arp(ip4(1), ip4(254)), h2 + core)

    def test_b27_p16_p30_floods(self):
        """100 000 and more frames as fast as they can be sent: the policy's cap is what others hear, and they are answered."""
        wire = self.lab(limit="{ pps: 20 }")
        wire.h2.drain(), wire.core.drain()
        began = time.monotonic()
        for n in range(60000):  # more than the tables hold, ARP and ND in turns
            wire.h1.send(arp(ip4(1), ip4(f"10.0.3.{n % 256}")))
            wire.h1.send(ns(ip6(f"2001:db8::{n % 65535 + 1:x}:1")))
            if n % 3000 == 0:  # h2 asks meanwhile
                wire.h2.send(arp(ip4(2), ip4(9), sha=H2, source=H2))
        spent = time.monotonic() - began
        answers = [f for f in wire.h2.drain() if a.Answer.is_one(f) and f[28:32] == ip4(9)]
        self.assertEqual(len(answers), 20)
        wait_for("the daemon goes on", lambda: "One" in wire.show("show", "ports"))
        cap = 2 * (20 * (spent + 1) + 20)
        flooded = self.heard(wire.core.drain(), (b"\x08\x06", b"\x86\xdd"))
        self.assertLessEqual(len(flooded), cap)
        document = json.loads(wire.show("show", "ports", "--port", "m1", "--json"))
        dropped = sum(f["packets"] for p in document["ports"] for f in p["frames"] if f["reason"] in ("arp-limit", "nd-limit"))
        self.assertGreater(dropped, 100000)

    def test_p5_sweep(self):
        """A /22 of which 30 % is used: nobody hears a single question."""
        wire = self.lab()
        used = [n for n in range(1, 1023) if n % 10 < 3]
        address = lambda n: ip4(f"10.0.{4 + n // 256}.{n % 256}")
        for at in range(0, len(used), 50):
            wire.speaker.send(a.update(b"".join(a.mac_ip(bytes([2, 0, 0, 1, n >> 8, n & 255]), address(n))
                                                for n in used[at:at + 50])))
        last = arp(ip4(1), address(used[-1]))
        wait_for("the last of them is answered for", lambda: self.answered(wire, last))
        wire.fence()
        for tap in (wire.h1, wire.h2, wire.core):
            tap.drain()
        answers = 0
        for n in range(1, 1023):
            wire.h1.send(arp(ip4(1), address(n)))
            if n % 100 == 0:  # in steps that no limit stands in the way of
                time.sleep(0.05)
        h2, core = wire.fence()
        answers = [f for f in wire.h1.drain() if a.Answer.is_one(f)]
        self.assertEqual({f[28:32] for f in answers}, {address(n) for n in used})
        self.assertEqual(len(answers), len(used))
        self.assertEqual([f for f in h2 + core if f[12:14] == b"\x08\x06" and f[6:12] == H1], [])

    def test_p13_no_ipv6(self):
        """IPv6 is switched off in the PE (it is in this lab): ND is answered all the same."""
        wire = self.lab()
        self.assertEqual(wire.run("pe", "cat", "/proc/sys/net/ipv6/conf/br0/disable_ipv6").strip(), "1")
        self.assertEqual(self.answered(wire, ns(ip6(9)), ns(ip6(9), source=bytes(16), options=b"")), 2)
        self.assertIsNone(wire.daemon.poll())

    def test_p25_answers_go_on_without_bgp(self):
        wire = self.lab()
        wire.speaker.close()
        wait_for("the session is down", lambda: "Established" not in wire.show("show", "neighbors"))
        began = time.monotonic()
        while time.monotonic() - began < 5:
            self.assertEqual(self.answered(wire, arp(ip4(1), ip4(9)), ns(ip6(9))), 2)
            time.sleep(0.01)  # within the rate of frames to the daemon

    def test_p32_router_advertisements(self):
        wire = self.lab()
        wire.h2.drain(), wire.core.drain()
        link_local = ip6("fe80::1")
        frames = [icmp6(link_local, ip6("ff02::1"), b"\x86\0\0\0" + bytes(12), NODES),
                  icmp6(link_local, ip6("ff02::2"), b"\x85\0\0\0" + bytes(4), bytes.fromhex("333300000002")),
                  icmp6(link_local, ip6(2), b"\x86\0\0\0" + bytes(12), H2)]
        for frame in frames:
            wire.h1.send(frame)
        h2, core = wire.fence()
        for frame in frames:
            self.assertNotIn(frame, h2 + core)
        reasons = collections.Counter()
        for port in json.loads(wire.show("show", "ports", "--port", "m1", "--json"))["ports"]:
            for f in port["frames"]:
                reasons[f["reason"]] += f["packets"]
        self.assertEqual((reasons["ra"], reasons["rs"]), (2, 1))

    def test_p36_a_client_that_never_reads(self):
        wire = self.lab()
        clients = []
        for _ in range(8):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.connect(str(wire.folder / "sock"))
            s.sendall(b'{"command":"show","what":"ports"}\n')
            clients.append(s)
        for _ in range(20):
            probe = arp(bytes(4), ip4("10.0.2.251"))
            wire.h1.send(probe)
            wire.h2.until(lambda f: f == probe)
            self.assertEqual(self.answered(wire, arp(ip4(1), ip4(9))), 1)

    def test_acd_of_arping(self):
        """`arping -D` takes an address that is bound for used, and its own or a free one for free."""
        wire = self.lab()
        wire.run("h1", "ip", "link", "set", "e0", "arp", "on")
        probe = lambda address: subprocess.run(
            ["nsenter", f"--net=/run/netns/{wire.names['h1']}", "arping", *self.arping(address)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        used, own = probe("10.0.0.9"), probe("10.0.0.1")
        self.assertTrue(self.conflict(used), used.stdout)
        self.assertFalse(self.conflict(own), own.stdout)

    def arping(self, address):
        """iputils has -D; the other arping sends probes with -0."""
        self.iputils = "iputils" in subprocess.run(["arping", "-V"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                                   check=False).stdout
        return ["-D", "-c", "2", "-w", "3", "-I", "e0", address] if self.iputils else ["-0", "-c", "2", "-w", "2", "-i", "e0",
                                                                                         address]

    def conflict(self, result):
        return result.returncode == 1 if self.iputils else bool(re.search(r"from 02:00:00:00:00:09|02:00:00:00:00:09", result.stdout))

    @unittest.skipUnless(os.path.exists(NETWORKD), "no systemd-networkd")
    def test_acd_of_systemd_networkd(self):
        """It drops an address that is bound to another one and takes its own."""
        wire = self.lab()
        wire.run("h1", "ip", "link", "set", "e0", "arp", "on")
        self.assertIn("Conflict on 10.0.0.9", self.networkd(wire, "10.0.0.9", ("Conflict on", "Successfully claimed")))
        self.assertIn("Successfully claimed", self.networkd(wire, "10.0.0.1", ("Conflict on", "Successfully claimed")))

    def networkd(self, wire, address, words):
        """What it says of the address, up to one of the words. In mounts of its own; a read-only /sys tells it that there is
        no udev to wait for."""
        unit = ("[Match]\nName=e0\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
                f"[Address]\nAddress={address}/21\nDuplicateAddressDetection=ipv4\n")
        script = ("mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/network /run/systemd/netif/links && "
                  "mount -t sysfs -o ro sysfs /sys && printf \"$1\" > /run/systemd/network/e0.network && "
                  f"SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console exec {NETWORKD}")
        process = subprocess.Popen(["nsenter", f"--net=/run/netns/{wire.names['h1']}", "unshare", "--mount", "--propagation",
                                    "private", "sh", "-c", script, "sh", unit], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        guard = threading.Timer(60, process.kill)
        guard.start()
        said = ""
        try:
            for line in process.stdout:
                said += line
                if any(word in line for word in words):
                    break
        finally:
            guard.cancel()
            process.terminate()
            process.wait()
            process.stdout.close()
        return said

    def dad_of_the_kernel(self, optimistic):
        """A bound address of another one is found to be a duplicate, a free one is taken."""
        wire = self.lab()
        wire.run("h1", "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.e0.disable_ipv6=0",
                 "net.ipv6.conf.e0.accept_dad=1", "net.ipv6.conf.e0.dad_transmits=1", "net.ipv6.conf.e0.enhanced_dad=1")
        wire.run("h1", "sysctl", "-qw", f"net.ipv6.conf.e0.optimistic_dad={optimistic}", check=False)
        wire.run("h1", "ip", "link", "set", "e0", "arp", "on")
        wire.run("h1", "ip", "addr", "add", "2001:db8::9/64", "dev", "e0")
        wire.run("h1", "ip", "addr", "add", "2001:db8::1/64", "dev", "e0")
        state = lambda: wire.run("h1", "ip", "-6", "addr", "show", "dev", "e0")
        wait_for("the duplicate is found", lambda: re.search(r"2001:db8::9/64.*dadfailed", state()))
        wait_for("its own address is taken", lambda: re.search(r"2001:db8::1/64(?!.*(tentative|dadfailed))", state()))

    def test_dad_of_the_kernel(self):
        self.dad_of_the_kernel(0)

    def test_optimistic_dad_of_the_kernel(self):
        self.dad_of_the_kernel(1)
