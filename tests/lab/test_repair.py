# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody meddles with what the daemon keeps in the kernel, the underlay loses a PE, many MACs come and go at once:
the kernel's state is right again soon, other people's entries are not touched, and each repair is counted and logged."""
import json
import re
import signal
import socket
import struct
import unittest

import labkit
import test_differential as bgp
import test_pe
from labkit import wait_for
from scripted import Reflector

TWO, THREE = "10.0.0.2", "10.0.0.3"
FAR, FARTHER = "172.16.0.2", "172.16.0.3"  # tunnel endpoints that the underlay has routes to
SOON = 10  # s; the daemon looks at everything every 30 s anyway
MANY = 100_000
DOMAIN = """  - name: peering
    vni: 100
    bridge: br100
    vxlan: vx100
    profile: off
    responder: pcap
    ports:
      - interface: m1
        name: Alpha Net
        as: 64501
        macs: [02:00:00:00:aa:01]
        enforce-macs: false
      - interface: m2
  - name: second
    vni: 200
    bridge: br200
    vxlan: vx200
    profile: off
    responder: pcap
    ports:
      - interface: m3
"""
OWNER = bytes.fromhex("02000000aa01")


class PeCase(unittest.TestCase):
    """A PE with three member ports and scripted other PEs."""

    @classmethod
    def setUpClass(cls):
        cls.pe = Reflector("plrep", [f"address: {a}, as: 65000, passive: true, connect-retry: 1, graceful-restart: false"
                                     for a in (TWO, THREE)], domains=DOMAIN)
        cls.addClassCleanup(cls.pe.stop)
        for n in (1, 2, 3):
            for command in (f"link add m{n} type veth peer name h{n}", f"link set m{n} up", f"link set h{n} up"):
                cls.pe.net.run("ip", *command.split())
        for command in ("link add u0 type veth peer name u0p", "link set u0p up", "link set u0 up", "route add 172.16.0.0/24 dev u0"):
            cls.pe.net.run("ip", *command.split())
        cls.plain = cls.pe.settings.read_text()
        cls.two, cls.three = (test_pe.OtherPe(cls.pe.net, a) for a in (TWO, THREE))
        wait_for("the ports", lambda: [p["state"] for p in cls.pe.show("ports")].count("up") == 3)
        cls.station = {}
        for n in (1, 2, 3):
            cls.station[n] = cls.pe.net.socket(socket.AF_PACKET, socket.SOCK_RAW)
            cls.station[n].bind((f"h{n}", 0))
            cls.addClassCleanup(cls.station[n].close)
        cls.numbers = 0

    def setUp(self):
        type(self).numbers += 1
        self.mac = b"\2\0\0\0\xd0" + bytes([self.numbers])
        for peer in (self.two, self.three):
            peer.send(b"", test_pe.KEEPALIVE)
        self.repairs = self.domain()["repairs"]

    def tearDown(self):
        self.assertTrue(self.pe.alive(), self.pe.log()[-3000:])

    @classmethod
    def ask(cls, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
            control.connect(str(cls.pe.folder / "sock"))
            control.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(b"".join(iter(lambda: control.recv(65536), b"")))

    @classmethod
    def reload(cls):
        answer = cls.ask({"command": "reload", "arguments": {"force": True}})
        assert "result" in answer, answer

    def domain(self, n=0):
        return self.pe.show("summary")["domains"][n]

    def speak(self, mac, port=1):
        self.station[port].send(b"\2\0\0\0\xee\xee" + mac + b"\x88\xb5" + bytes(46))

    def ip(self, *words):
        return self.pe.net.run("ip", *words)

    def bridge(self, *words, check=True):
        return self.pe.net.run("bridge", "fdb", *words, check=check)

    def fdb(self, device="vx100"):
        return self.bridge("show", "dev", device).stdout

    def entries(self, mac, device="vx100"):
        """(in the bridge's table, VTEP of the tunnel's entry)"""
        lines = [line for line in self.fdb(device).splitlines() if line.startswith(test_pe.text(mac))]
        vtep = next((re.search(r"dst (\S+)", line)[1] for line in lines if "dst" in line), None)
        return any("master" in line for line in lines), vtep

    def wait_at(self, vtep, mac=None):
        wanted = (vtep is not None, vtep)
        wait_for(f"{test_pe.text(mac or self.mac)} at {vtep}", lambda: self.entries(mac or self.mac) == wanted, SOON)

    def at_port(self, mac, n):
        return any(line.startswith(test_pe.text(mac)) and "master" in line for line in self.fdb(f"m{n}").splitlines())

    def announce(self, peer, hop, *routes, communities=b""):
        peer.send(bgp.update(bgp.reach(*routes, hop=socket.inet_aton(hop)), bgp.ORIGIN, bgp.AS_PATH, bgp.LOCAL_PREF,
                             bgp.attribute(0xc0, 16, bgp.TARGETS + communities)))

    def was_repaired(self, word):
        wait_for("the repair to be counted", lambda: self.domain()["repairs"] > self.repairs, SOON)
        self.assertRegex(self.pe.log(), f"put right: .*{word}")


@labkit.needs("peerland", "peerlan")
class Repair(PeCase):
    def test_deleted_entries_come_back(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.bridge("del", test_pe.text(self.mac), "dev", "vx100", "dst", TWO, "self")
        self.wait_at(TWO)
        self.was_repaired(test_pe.text(self.mac))
        self.bridge("del", test_pe.text(self.mac), "dev", "vx100", "master")
        self.wait_at(TWO)
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(None)

    def test_a_changed_entry_is_changed_back(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.bridge("replace", test_pe.text(self.mac), "dev", "vx100", "dst", "10.9.9.9", "self", "extern_learn")
        self.wait_at(TWO)
        self.was_repaired(test_pe.text(self.mac))
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(None)

    def test_an_entry_that_nobody_announces_goes(self):
        self.bridge("add", test_pe.text(self.mac), "dev", "vx100", "dst", "10.9.9.9", "self", "extern_learn")
        wait_for("the entry to go", lambda: self.entries(self.mac) == (False, None), SOON)
        self.was_repaired("nobody announces")

    def test_the_flood_list(self):
        imet = bgp.nlri(3, self.two.rd(100) + b"\0\0\0\0\x20" + socket.inet_aton(TWO))
        self.two.announce(imet, more=bgp.attribute(0xc0, 22, b"\0\6" + (100).to_bytes(3, "big") + socket.inet_aton(TWO)))
        def flooded():
            return re.findall(r"(?m)^00:00:00:00:00:00 dst (\S+)", self.fdb())
        wait_for("the flood entry", lambda: flooded() == [TWO])
        self.bridge("del", "00:00:00:00:00:00", "dev", "vx100", "dst", TWO)
        wait_for("it to be back", lambda: flooded() == [TWO], SOON)
        self.was_repaired("flood list")
        self.bridge("append", "00:00:00:00:00:00", "dev", "vx100", "dst", "10.9.9.9")
        wait_for("the other to go", lambda: flooded() == [TWO], SOON)
        self.two.withdraw(imet)
        wait_for("no flood entry", lambda: not flooded())

    def test_the_bridge_is_flushed(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.ip("link", "set", "br100", "type", "bridge", "fdb_flush")
        self.bridge("flush", "dev", "vx100", check=False)
        wait_for("the MAC to be back", lambda: self.entries(self.mac) == (True, TWO), SOON)
        wait_for("the provisioned MAC", lambda: "sticky" in next(
            (line for line in self.fdb("m1").splitlines() if line.startswith(test_pe.text(OWNER))), ""), SOON)
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(None)

    def test_a_port_leaves_the_bridge(self):
        self.ip("link", "set", "m2", "nomaster")
        wait_for("it to be a port again", lambda: "master br100" in self.ip("-o", "link", "show", "m2").stdout, SOON)
        self.was_repaired("m2 had left the bridge")
        self.speak(self.mac, 2)
        wait_for("it to work", lambda: self.at_port(self.mac, 2), SOON)

    def test_the_bridge_goes(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.ip("link", "del", "br100")
        wait_for("the ports", lambda: "master br100" in self.ip("-o", "link", "show", "m1").stdout
                 and "master br100" in self.ip("-o", "link", "show", "m2").stdout, SOON)
        wait_for("the MAC", lambda: self.entries(self.mac) == (True, TWO), SOON)
        self.was_repaired("removed")
        self.ip("link", "del", "vx100")
        wait_for("the MAC again", lambda: "vx100" in self.ip("-o", "link", "show").stdout
                 and self.entries(self.mac) == (True, TWO), SOON)
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(None)

    def test_the_vxlan_device_goes_down(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.ip("link", "set", "vx100", "down")
        wait_for("it to be up", lambda: ",UP" in self.ip("-o", "link", "show", "vx100").stdout
                 and self.entries(self.mac) == (True, TWO), SOON)
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(None)

    def test_static_entries_of_others_stay(self):
        theirs = (("02:00:00:00:bb:01", "dev", "m2", "master", "static"),
                  ("02:00:00:00:bb:02", "dev", "vx100", "dst", "10.9.9.9", "self", "permanent"))
        for entry in theirs:
            self.bridge("add", *entry)
        before = self.pe.show("summary")
        # A full reconciliation: entries of ours are meddled with.
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.bridge("del", test_pe.text(self.mac), "dev", "vx100", "dst", TWO, "self")
        self.wait_at(TWO)
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(None)
        self.assertTrue(before)
        self.assertRegex(self.fdb("m2"), r"(?m)^02:00:00:00:bb:01 .*static")
        self.assertRegex(self.fdb(), r"(?m)^02:00:00:00:bb:02 dst 10.9.9.9 .*permanent")
        for entry in theirs:
            self.bridge("del", *[w for w in entry if w not in ("static", "permanent")])

    def test_many_learned_at_once(self):
        """More events than the socket holds: the daemon stands still meanwhile."""
        socket_ = self.station[2]
        few = 5  # what the other ports have, and what their ends say by themselves
        self.pe.process.send_signal(signal.SIGSTOP)
        try:
            for n in range(MANY):
                socket_.send(b"\2\0\0\0\xee\xee\2\0\1" + n.to_bytes(3, "big") + b"\x88\xb5" + bytes(46))
        finally:
            self.pe.process.send_signal(signal.SIGCONT)
        def learned():
            return self.fdb("m2").count("02:00:01:")
        there = learned()
        self.assertGreater(there, 50_000)
        wait_for("all of them", lambda: self.domain()["macs_local"] >= there, 60)
        self.ip("link", "set", "h2", "down")
        wait_for("all to be gone", lambda: self.domain()["macs_local"] <= few, SOON)
        self.ip("link", "set", "h2", "up")
        wait_for("the port", lambda: next(p["state"] for p in self.pe.show("ports") if p["port"] == "m2") == "up")


@labkit.needs("peerland", "peerlan")
class Underlay(PeCase):
    """Next-hop tracking: the kernel's route to another PE's tunnel endpoint."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.restore)

    def restore(self):
        self.ip("link", "set", "u0", "up")
        self.pe.net.run("ip", "route", "replace", "172.16.0.0/24", "dev", "u0")
        self.pe.net.run("ip", "route", "del", "default", check=False)
        self.pe.settings.write_text(self.plain)
        self.reload()

    def test_a_route_goes_and_comes(self):
        self.announce(self.two, FAR, self.two.mac(self.mac))
        other = b"\2\0\0\0\xd9" + self.mac[5:]
        self.announce(self.two, TWO, self.two.mac(other))
        self.wait_at(FAR)
        self.wait_at(TWO, other)
        self.ip("route", "del", "172.16.0.0/24", "dev", "u0")
        self.wait_at(None)
        self.assertEqual(self.entries(other), (True, TWO))
        row = next(m for m in self.pe.show("macs") if m["mac"] == test_pe.text(self.mac))
        self.assertEqual((row["where"], row["unreachable"]), ("nowhere", FAR))
        self.assertEqual(self.pe.show("summary")["next_hops"]["unreachable"], [FAR])
        self.assertIn(f"no route to PE {FAR}", self.pe.log())
        self.ip("route", "add", "172.16.0.0/24", "dev", "u0")
        self.wait_at(FAR)
        # Without carrier IPv4 routes stay, and nothing is said of them.
        self.ip("link", "set", "u0", "down")
        self.wait_at(None)
        self.ip("link", "set", "u0", "up")
        self.ip("route", "replace", "172.16.0.0/24", "dev", "u0")
        self.wait_at(FAR)
        self.two.withdraw(self.two.mac(self.mac), self.two.mac(other))
        self.wait_at(None)

    def test_another_pe_takes_over_at_once(self):
        self.announce(self.two, FAR, self.two.mac(self.mac), communities=test_pe.mobility(7))
        self.announce(self.three, THREE, self.three.mac(self.mac))
        self.wait_at(FAR)
        self.ip("route", "add", "blackhole", FAR)
        self.wait_at(THREE)
        self.ip("route", "del", "blackhole", FAR)
        self.wait_at(FAR)
        self.two.withdraw(self.two.mac(self.mac))
        self.three.withdraw(self.three.mac(self.mac))
        self.wait_at(None)

    def test_as_the_settings_say(self):
        self.announce(self.two, FAR, self.two.mac(self.mac))
        self.wait_at(FAR)
        self.ip("route", "add", "default", "dev", "u0")
        self.ip("route", "del", "172.16.0.0/24", "dev", "u0")
        marker = b"\2\0\0\0\xd8" + self.mac[5:]
        self.announce(self.two, FARTHER, self.two.mac(marker))  # looked up later than the change
        self.wait_at(FARTHER, marker)
        self.assertEqual(self.entries(self.mac), (True, FAR))
        self.pe.settings.write_text(self.plain + "next-hop-tracking: no-default-route\n")
        self.reload()
        self.wait_at(None)
        self.pe.settings.write_text(self.plain + "next-hop-tracking: off\n")
        self.reload()
        self.wait_at(FAR)
        self.ip("route", "del", "default")
        self.announce(self.two, FAR, self.two.mac(marker))
        self.wait_at(FAR, marker)
        self.assertEqual(self.entries(self.mac), (True, FAR))
        self.two.withdraw(self.two.mac(self.mac), self.two.mac(marker))
        self.wait_at(None)

    def test_many_macs_behind_a_dead_pe(self):
        """100 000 of them, by the route, and by the session's end."""
        def all_of(hop):
            for i in range(0, MANY, 60):
                self.announce(self.two, hop, *[self.two.mac(b"\2\0\2" + n.to_bytes(3, "big"))
                                               for n in range(i, min(i + 60, MANY))])
        def in_kernel():
            return self.fdb().count(f"dst {FAR}")
        all_of(FAR)
        wait_for("all MACs", lambda: self.domain()["macs_remote"] >= MANY, 120)
        self.assertGreaterEqual(in_kernel(), MANY)
        self.ip("route", "del", "172.16.0.0/24", "dev", "u0")
        wait_for("none of them", lambda: self.domain()["macs_remote"] == 0, 30)
        self.assertEqual(in_kernel(), 0)
        self.ip("route", "add", "172.16.0.0/24", "dev", "u0")
        wait_for("all MACs again", lambda: self.domain()["macs_remote"] >= MANY, 30)
        self.assertGreaterEqual(in_kernel(), MANY)
        self.two.close()
        wait_for("none of them", lambda: self.domain()["macs_remote"] == 0, 30)
        self.assertEqual(in_kernel(), 0)
        type(self).two = test_pe.OtherPe(self.pe.net, TWO)


@labkit.needs("peerland", "peerlan")
class Mobility(PeCase):
    def test_one_mac_in_several_domains(self):
        """Each domain has a place of its own for it."""
        target = struct.pack("!BBHI", 0, 2, 65000, 200)
        self.speak(self.mac, 3)
        wait_for("it in the second domain", lambda: self.at_port(self.mac, 3), SOON)
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.assertTrue(self.at_port(self.mac, 3))
        self.assertEqual(sorted((m["domain"], m["where"], m["moves"]) for m in self.pe.show("macs")
                                if m["mac"] == test_pe.text(self.mac)),
                         [("peering", "remote", 0), ("second", "local", 0)])
        self.three.send(bgp.update(bgp.reach(self.three.mac(self.mac, vni=200), hop=socket.inet_aton(THREE)), bgp.ORIGIN,
                                   bgp.AS_PATH, bgp.LOCAL_PREF,
                                   bgp.attribute(0xc0, 16, target + bytes.fromhex("030c000000000008") + test_pe.mobility(1))))
        wait_for("it to move in the second domain", lambda: self.entries(self.mac, "vx200") == (True, THREE), SOON)
        self.assertEqual(self.entries(self.mac), (True, TWO))
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(None)
        self.assertEqual(self.entries(self.mac, "vx200"), (True, THREE))
        self.three.withdraw(self.three.mac(self.mac, vni=200))
        wait_for("it to be gone", lambda: self.entries(self.mac, "vx200") == (False, None), SOON)

    def freeze(self, mac):
        self.two.announce(self.two.mac(mac))
        self.wait_at(TWO, mac)
        def frozen():
            return next((m["duplicate"] for m in self.pe.show("macs") if m["mac"] == test_pe.text(mac)), False)
        for sequence in range(2, 20, 2):
            self.speak(mac, 2)
            wait_for("a decision", lambda: frozen() or self.at_port(mac, 2))
            if frozen():
                return frozen
            self.two.announce(self.two.mac(mac), communities=test_pe.mobility(sequence))
            wait_for("its way back", lambda: frozen() or self.entries(mac)[1] == TWO)
        self.fail("never frozen")

    def test_the_alarm_names_ports_pes_and_members(self):
        frozen = self.freeze(self.mac)
        self.assertTrue(frozen())
        self.assertRegex(self.pe.log(), rf"duplicate MAC {test_pe.text(self.mac)}: moves between "
                                        r"(PE 10\.0\.0\.2 and port m2|port m2 and PE 10\.0\.0\.2); frozen")
        # A provisioned one names its member, and the port where it belongs.
        self.two.announce(self.two.mac(OWNER), communities=test_pe.mobility(7))
        wait_for("the alarm", lambda: re.search(
            r"provisioned MAC 02:00:00:00:aa:01 \(AS64501 Alpha Net\) seen at a second place: "
            r"port m1 \(AS64501 Alpha Net\) and PE 10\.0\.0\.2", self.pe.log()))
        self.two.withdraw(self.two.mac(OWNER), self.two.mac(self.mac))

    def test_cleared_by_the_operator(self):
        frozen = self.freeze(self.mac)
        self.assertIn("error", self.ask({"command": "clear-duplicate", "arguments": {"mac": "02:00:00:00:ee:01"}}))
        r = self.pe.net.run(labkit.BUILD / "bin" / "peerlan", "-s", self.pe.folder / "sock", "clear", "duplicate",
                            test_pe.text(self.mac))
        self.assertIn("no longer frozen", r.stdout)
        self.assertFalse(frozen())
        self.assertIn(f"duplicate MAC {test_pe.text(self.mac)}: cleared", self.pe.log())
        self.two.withdraw(self.two.mac(self.mac))

    def test_a_provisioned_mac_is_immune(self):
        """Its route stays out and its entry stays, whatever others say or send."""
        def stands():
            return "sticky" in next((line for line in self.fdb("m1").splitlines()
                                     if line.startswith(test_pe.text(OWNER))), "")
        wait_for("the owner", stands, SOON)
        for n in range(10):
            self.two.announce(self.two.mac(OWNER), communities=test_pe.mobility(n, n % 2 == 1))
            self.speak(OWNER, 2)
        after = b"\2\0\0\0\xda" + self.mac[5:]
        self.two.announce(self.two.mac(after))
        self.wait_at(TWO, after)
        self.assertTrue(stands())
        self.assertEqual(self.entries(OWNER), (False, None))
        row = next(m for m in self.pe.show("macs") if m["mac"] == test_pe.text(OWNER))
        self.assertEqual((row["where"], row["port"], row["duplicate"], row["advertised"]), ("local", "m1", False, True))
        self.two.withdraw(self.two.mac(OWNER), self.two.mac(after))


if __name__ == "__main__":
    unittest.main()
