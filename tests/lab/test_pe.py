# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon as a PE, with scripted BGP speakers that say they are other PEs, and a station behind a member port:
what stands in the kernel's FDB and what the others are told. "Bug N" are those of the requirements."""
import json
import re
import socket
import struct
import unittest

import labkit
import test_differential as bgp
from labkit import wait_for
from scripted import KEEPALIVE, Reflector

TWO, THREE, WATCHER = "10.0.0.2", "10.0.0.3", "10.0.0.4"
ESI = bgp.ESI
STATION = bytes.fromhex("02000000c001")
DOMAIN = """  - name: peering
    vni: 100
    bridge: br100
    vxlan: vx100
    profile: off
    responder: pcap
    ageing: 1s
    ports:
      - interface: m1
      - interface: m2
"""


SECOND_DOMAIN = """  - name: second
    vni: 200
    bridge: br200
    vxlan: vx200
    profile: off
    responder: pcap
    ports: []
"""
CHANGES = 1000


def text(mac):
    return ":".join(f"{b:02x}" for b in mac)


def mobility(sequence, sticky=False):
    return struct.pack("!BBBBI", 6, 0, sticky, 0, sequence)


def mobility_of(attributes):
    """The sequence number in the attributes of a route, or None."""
    value = attributes.get(16, (0, b""))[1]
    for i in range(0, len(value), 8):
        if value[i:i + 2] == b"\6\0":
            return struct.unpack("!I", value[i + 4:i + 8])[0]
    return None


class OtherPe(bgp.Observer):
    """A PE of its own address: its routes have its RD and next hop. Keeps what it is told, and how often of each
    of our MACs it was told that it is gone."""

    def __init__(self, net, address):
        self.withdrawn = {}
        super().__init__(net, address)

    def take(self, kind, body):
        verdict = bgp.rfc7606.judge(body)
        for key, route in verdict.routes.items():
            if route is None and key[0] == 2:
                self.withdrawn[key[14:20]] = self.withdrawn.get(key[14:20], 0) + 1
        super().take(kind, body)

    def rd(self, number):
        return struct.pack("!H4sH", 1, socket.inet_aton(self.address), number)

    def mac(self, mac, esi=b"\0" * 10, vni=100):
        return bgp.nlri(2, self.rd(vni) + esi + b"\0\0\0\0\x30" + mac + b"\0" + vni.to_bytes(3, "big"))

    def per_es(self, esi=ESI):
        return bgp.nlri(1, self.rd(1) + esi + b"\xff\xff\xff\xff\0\0\0")

    def per_evi(self, esi=ESI):
        return bgp.nlri(1, self.rd(100) + esi + b"\0\0\0\0\0\0\x64")

    def announce(self, *routes, communities=b"", more=b""):
        self.send(bgp.update(bgp.reach(*routes, hop=socket.inet_aton(self.address)), bgp.ORIGIN, bgp.AS_PATH,
                             bgp.LOCAL_PREF, bgp.attribute(0xc0, 16, bgp.TARGETS + communities), more))

    def withdraw(self, *routes):
        self.send(bgp.update(bgp.unreach(*routes)))

    def told(self, mac):
        """(sequence number or None) of our route for the MAC; False: it has none."""
        self.socket.settimeout(0.05)
        self.until(lambda: False)  # all that has come
        for route, attributes, _ in self.held.values():
            if route[0] == 2 and route[25:31] == mac and route[31] == 0:
                return mobility_of(attributes)
        return False


@labkit.needs("peerland", "peerlan")
class Pe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pe = Reflector("plpe", [f"address: {a}, as: 65000, passive: true, connect-retry: 1, graceful-restart: false"
                                    for a in (TWO, THREE, WATCHER)], domains=DOMAIN)
        cls.addClassCleanup(cls.pe.stop)
        for n in (1, 2):
            for command in (f"link add m{n} type veth peer name h{n}", f"link set m{n} up", f"link set h{n} up"):
                cls.pe.net.run("ip", *command.split())
        cls.two, cls.three, cls.watcher = (OtherPe(cls.pe.net, a) for a in (TWO, THREE, WATCHER))
        wait_for("the ports", lambda: [p["state"] for p in cls.pe.show("ports")] == ["up", "up", "core"])
        cls.station = {}
        for n in (1, 2):
            cls.station[n] = cls.pe.net.socket(socket.AF_PACKET, socket.SOCK_RAW)
            cls.station[n].bind((f"h{n}", 0))
            cls.addClassCleanup(cls.station[n].close)
        cls.numbers = 0

    def setUp(self):
        type(self).numbers += 1
        self.mac = b"\2\0\0\0\xd0" + bytes([self.numbers])  # each test has its own
        for peer in (self.two, self.three, self.watcher):
            peer.send(b"", KEEPALIVE)

    def tearDown(self):
        self.assertTrue(self.pe.alive(), self.pe.log()[-3000:])

    def speak(self, mac, port=1):
        """A frame of the station, to a MAC that nobody has."""
        self.station[port].send(b"\2\0\0\0\xee\xee" + mac + b"\x88\xb5" + bytes(46))

    def fdb(self, device="vx100"):
        return self.pe.net.run("bridge", "fdb", "show", "dev", device).stdout

    def where(self, mac):
        """The VTEP of the kernel's entry; "port" for one at a member port; None."""
        if re.search(rf"(?m)^{text(mac)} .*\bmaster\b", self.fdb("m1") + self.fdb("m2")):
            return "port"
        found = re.search(rf"(?m)^{text(mac)} dst (\S+)", self.fdb())
        return found[1] if found else None

    def wait_at(self, place, mac=None):
        wait_for(f"{text(mac or self.mac)} at {place}", lambda: self.where(mac or self.mac) == place, 10)

    def row(self, mac):
        return next((m for m in self.pe.show("macs") if m["mac"] == text(mac)), None)

    def reload(self):
        """Over the control socket: what the daemon answers."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
            control.connect(str(self.pe.folder / "sock"))
            control.sendall(b'{"command":"reload"}\n')
            return json.loads(b"".join(iter(lambda: control.recv(65536), b"")))

    # --- Ethernet segments of other PEs, RFC 7432 sections 8.2 and 9.2.2
    def test_a_mac_waits_for_the_route_of_its_segment(self):
        self.two.announce(self.two.mac(self.mac, ESI))
        row = wait_for("the MAC to be shown", lambda: self.row(self.mac))
        self.assertEqual((row["where"], row["unresolved"], row["esi"]), ("nowhere", True, text(ESI)))
        self.assertIsNone(self.where(self.mac))
        self.two.announce(self.two.per_es(), communities=bytes.fromhex("0601000000000000"))
        self.wait_at(TWO)
        row = self.row(self.mac)
        self.assertEqual((row["where"], row["unresolved"], row["esi"], row["vtep"]), ("remote", False, text(ESI), TWO))
        self.two.withdraw(self.two.per_es(), self.two.mac(self.mac))
        self.wait_at(None)

    def test_mass_withdraw(self):
        macs = [b"\2\0\0\0\xd1" + bytes([n]) for n in range(200)]
        self.two.announce(self.two.per_es(), self.two.mac(self.mac))
        for i in range(0, 200, 50):
            self.two.announce(*[self.two.mac(m, ESI) for m in macs[i:i + 50]])
        wait_for("all MACs", lambda: len(re.findall(r"(?m)^02:00:00:00:d1:\S+ dst 10.0.0.2", self.fdb())) == 200)
        self.two.withdraw(self.two.per_es())
        wait_for("no MAC of the segment", lambda: "02:00:00:00:d1:" not in self.fdb())
        self.assertEqual(self.where(self.mac), TWO)
        self.assertEqual(self.pe.show("summary")["domains"][0]["macs_unresolved"], 200)
        # Another PE of the segment, with our domain on it, takes them over.
        self.three.announce(self.three.per_es(), self.three.per_evi())
        wait_for("all MACs there", lambda: len(re.findall(r"(?m)^02:00:00:00:d1:\S+ dst 10.0.0.3", self.fdb())) == 200)
        self.three.withdraw(self.three.per_es(), self.three.per_evi())
        for i in range(0, 200, 50):
            self.two.withdraw(*[self.two.mac(m) for m in macs[i:i + 50]])
        self.two.withdraw(self.two.mac(self.mac))
        wait_for("nothing left", lambda: "02:00:00:00:d1:" not in self.fdb())

    # --- bugs of others
    def test_bug_1_a_lower_sequence_after_the_withdrawal(self):
        self.two.announce(self.two.mac(self.mac), communities=mobility(7))
        self.wait_at(TWO)
        self.two.withdraw(self.two.mac(self.mac))
        self.three.announce(self.three.mac(self.mac))
        self.wait_at(THREE)
        self.three.withdraw(self.three.mac(self.mac))
        self.wait_at(None)

    def test_bug_1_a_lower_sequence_before_the_withdrawal(self):
        self.two.announce(self.two.mac(self.mac), communities=mobility(7))
        self.wait_at(TWO)
        self.three.announce(self.three.mac(self.mac))
        wait_for("the second route", lambda: len([r for r in self.pe.show("routes", "--mac", text(self.mac))]) == 2)
        self.assertEqual(self.where(self.mac), TWO)
        self.two.withdraw(self.two.mac(self.mac))
        self.wait_at(THREE)
        self.three.withdraw(self.three.mac(self.mac))

    def test_bug_2_a_lower_sequence_after_a_restart(self):
        self.two.announce(self.two.mac(self.mac), communities=mobility(7))
        self.wait_at(TWO)
        self.two.close()
        self.wait_at(None)
        type(self).two = OtherPe(self.pe.net, TWO)
        self.two.announce(self.two.mac(self.mac), communities=mobility(3))
        self.wait_at(TWO)
        self.two.withdraw(self.two.mac(self.mac))

    def test_bug_4_a_station_that_comes_to_us(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        self.speak(self.mac)
        self.wait_at("port")
        self.assertNotIn(text(self.mac), self.fdb())
        wait_for("our route", lambda: self.watcher.told(self.mac) == 1)
        self.two.withdraw(self.two.mac(self.mac))
        wait_for("the withdrawal", lambda: len(self.pe.show("routes", "--mac", text(self.mac))) == 1)
        self.assertEqual(self.where(self.mac), "port")

    def test_bug_10_communities_that_are_not_known(self):
        for community in ("0604000205dc0000", "0608030000000000", "067f300000000000", "8001020304050607"):
            self.two.announce(self.two.mac(self.mac), communities=bytes.fromhex(community))
            self.wait_at(TWO)
            self.two.withdraw(self.two.mac(self.mac))
            self.wait_at(None)

    def test_bug_15_an_echo_freezes_the_mac(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        for sequence in range(2, 20, 2):
            self.speak(self.mac)
            self.speak(self.mac)
            wait_for("a decision", lambda s=sequence: self.row(self.mac)["duplicate"]
                     or self.watcher.told(self.mac) == s - 1)
            if self.row(self.mac)["duplicate"]:
                break
            self.two.announce(self.two.mac(self.mac), communities=mobility(sequence))
            wait_for("its way back", lambda: self.row(self.mac)["duplicate"] or self.where(self.mac) == TWO)
        self.assertTrue(self.row(self.mac)["duplicate"])
        self.assertLessEqual(self.row(self.mac)["sequence"], 5)
        self.assertIn("duplicate MAC " + text(self.mac), self.pe.log())
        self.two.withdraw(self.two.mac(self.mac))

    def test_bug_15_a_sticky_mac_is_not_advertised_by_us(self):
        self.two.announce(self.two.mac(self.mac), communities=mobility(0, True))
        self.wait_at(TWO)
        self.speak(self.mac)
        other = b"\2\0\0\0\xd2\1"
        self.speak(other)  # behind it, and learned
        wait_for("our route for the other MAC", lambda: self.watcher.told(other) is None)
        self.assertEqual(self.where(self.mac), TWO)
        self.assertIs(self.watcher.told(self.mac), False)
        self.two.withdraw(self.two.mac(self.mac))

    def test_bug_17_the_second_route_of_a_segment_takes_over(self):
        self.two.announce(self.two.per_es(), self.two.mac(self.mac, ESI))
        self.three.announce(self.three.per_es(), self.three.mac(self.mac, ESI))
        self.wait_at(TWO)
        wait_for("both routes", lambda: len(self.pe.show("routes", "--mac", text(self.mac))) == 2)
        monitor = self.pe.net.start("bridge", "monitor", "fdb", log=self.pe.folder / "monitor")
        try:
            # Its own word that it listens: an entry of ours.
            def seen(pattern):
                return re.search(pattern, (self.pe.folder / "monitor").read_text())
            def listens():
                self.pe.net.run("bridge", "fdb", "replace", "02:00:00:00:aa:aa", "dev", "h1", "self", check=False)
                return seen("02:00:00:00:aa:aa")
            wait_for("the monitor", listens)
            self.two.withdraw(self.two.mac(self.mac))
            self.wait_at(THREE)
            wait_for("the change to be told", lambda: seen(rf"{text(self.mac)} .*dst {THREE}"))
        finally:
            monitor.kill()
            monitor.wait()
        self.assertFalse(seen(rf"(?i)deleted {text(self.mac)}"), "absent for a moment")
        self.three.withdraw(self.three.per_es(), self.three.mac(self.mac))
        self.two.withdraw(self.two.per_es())

    def test_bug_17_domains_come_and_go(self):
        """Under load: a peer announces and withdraws routes of the domain meanwhile."""
        plain = self.pe.settings.read_text()
        more = plain + SECOND_DOMAIN
        self.addCleanup(self.reload)
        self.addCleanup(self.pe.settings.write_text, plain)
        macs = [b"\2\0\0\0\xd3" + bytes([n]) for n in range(20)]
        def routes():
            return [self.two.mac(m, vni=200) for m in macs]
        target = struct.pack("!BBHI", 0, 2, 65000, 200)
        for n in range(CHANGES):
            self.pe.settings.write_text(plain if n % 2 else more)
            if n % 3:
                self.two.announce(*routes(), communities=target)
            else:
                self.two.withdraw(*routes())
            answer = self.reload()
            self.assertIn("settings applied", answer.get("result", ""), answer)
            if n % 50 == 0:
                for peer in (self.two, self.three, self.watcher):
                    peer.send(b"", KEEPALIVE)
        self.pe.settings.write_text(more)
        self.two.announce(*routes(), communities=target)
        self.reload()
        wait_for("the domain's MACs", lambda: len(re.findall(r"(?m)^02:00:00:00:d3:\S+ dst 10.0.0.2", self.fdb("vx200"))) == 20)
        self.two.withdraw(*routes())
        wait_for("no MACs", lambda: "02:00:00:00:d3:" not in self.fdb("vx200"))
        self.pe.settings.write_text(plain)
        self.reload()
        self.assertNotIn("vx200", self.pe.net.run("ip", "-o", "link", "show").stdout)

    def test_bug_22_targets_in_effect_are_shown(self):
        domain = self.pe.show("summary")["domains"][0]
        self.assertEqual((domain["import_targets"], domain["export_targets"]), (["*:100", "*:268435556"], ["65000:100"]))

    def test_bug_21_ageing(self):
        """Entries for MACs at other PEs don't age; ours does, and is withdrawn once each time."""
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        for cycle in (1, 2):  # each takes the bridge's ageing time, and more
            self.speak(STATION)
            wait_for("our route", lambda: self.watcher.told(STATION) is not False)
            wait_for("its withdrawal", lambda: self.watcher.told(STATION) is False)
            self.assertEqual(self.watcher.withdrawn[STATION], cycle)
        self.assertEqual(self.where(self.mac), TWO)
        for line in self.fdb().splitlines():
            if line.startswith(text(self.mac)):
                self.assertIn("extern_learn", line)
        # What the other side hears next is something else, not a second withdrawal.
        self.speak(self.mac, 2)
        wait_for("our route for the other MAC", lambda: self.watcher.told(self.mac) == 1)
        self.assertEqual(self.watcher.withdrawn[STATION], 2)
        self.two.withdraw(self.two.mac(self.mac))

    def test_bug_24_a_session_flap_removes_nothing_for_good(self):
        self.two.announce(self.two.mac(self.mac))
        self.wait_at(TWO)
        for _ in range(3):
            self.two.close()
            self.wait_at(None)
            type(self).two = OtherPe(self.pe.net, TWO)
            self.two.announce(self.two.mac(self.mac))
            self.wait_at(TWO)
        self.two.withdraw(self.two.mac(self.mac))

    def test_many_macs_are_shown_in_pieces(self):
        macs = [b"\2\0\0\xa0" + struct.pack("!H", n) for n in range(3000)]
        for i in range(0, 3000, 60):
            self.two.announce(*[self.two.mac(m) for m in macs[i:i + 60]])
        wait_for("all MACs", lambda: self.pe.show("summary")["domains"][0]["macs_remote"] >= 3000)
        shown = [m["mac"] for m in self.pe.show("macs") if m["mac"].startswith("02:00:00:a0:")]
        self.assertEqual(shown, [text(m) for m in macs])
        for i in range(0, 3000, 60):
            self.two.withdraw(*[self.two.mac(m) for m in macs[i:i + 60]])
        wait_for("no MACs", lambda: self.pe.show("summary")["domains"][0]["macs_remote"] == 0)


if __name__ == "__main__":
    unittest.main()
