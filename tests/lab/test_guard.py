# SPDX-License-Identifier: GPL-2.0-or-later
"""Port security through real ports: incidents of exchanges (requirements, section 4) played again, each way that a port
closes and opens, what changes while frames flow, and what an operator sees of it."""
import re
import subprocess
import time
import unittest

import guardkit
import labkit
from guardkit import BROADCAST, REMOTE, ROGUE, SPEAKER, arp, ethernet, ip4, ip6, mac, octets, udp4, vxlan
from labkit import wait_for

MEMBER = "name: Member {n}, as: 6450{n}, macs: ['{mac}'], addresses: [{ip4}, '{ip6}']"
# Of what comes, something passes: so that there is something to be limited, and to loop.
POLICIES = """policies:
  chatty:
    ingress: { broadcast: { pps: 50, burst: 100ms }, multicast: { pps: 50, burst: 100ms } }
    egress: { broadcast: unlimited, multicast: unlimited, total: unlimited }
    encap: { broadcast: unlimited, multicast: unlimited }
    decap: { broadcast: unlimited, multicast: unlimited }
    security: { violations: 3, window: 10s, hold: 2s, max-hold: 5s, flap-hold: 2s }
  strict:
    security: { macs: quarantine, spoofing: shut, protocols: quarantine, storm: shut, storm-rate: 500, violations: 3,
                window: 2s, hold: 3s, max-hold: 7s, flap-hold: 2s }
"""
PORT = ", policy: "


def is_from(n):
    return lambda frame: frame[6:12] == octets(mac(n))


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class GuardCase(unittest.TestCase):
    name, ports, node, domain, profile = "plguard", {}, POLICIES, "", "static"
    speaker = True

    @classmethod
    def setUpClass(cls):
        cls.pe = guardkit.Pe(cls.name, cls.ports, cls.node, cls.domain, cls.profile)
        cls.addClassCleanup(cls.pe.stop)
        if cls.speaker:
            cls.other = guardkit.OtherPe(cls.pe.net, SPEAKER)
            cls.other.announce_flood()
            wait_for("the other PE in the flood list", lambda: cls.pe.show("summary")["domains"][0]["remote_vteps"] == 1)

    def setUp(self):
        self.original = dict(self.pe.ports), self.pe.node
        if self.speaker:
            self.other.keep()
        for n in self.pe.ports:
            self.pe.peerlan("port", f"m{n}", "open", check=False)
        self.pe.drain()

    def tearDown(self):
        self.assertTrue(self.pe.alive(), self.pe.log()[-3000:])
        if (dict(self.pe.ports), self.pe.node) != self.original:
            self.pe.ports, self.pe.node = self.original
            self.pe.reload()

    def logged(self, pattern):
        return re.findall(pattern, self.pe.log())


class Incidents(GuardCase):
    name = "plinc"
    ports = {n: MEMBER + PORT + "chatty" for n in (1, 2, 3)}

    def loop(self, first, second, keys):
        """Two further edge ports, joined by a cable, added while the daemon runs."""
        self.pe.link(f"m{first}", f"m{second}")
        self.addCleanup(self.pe.net.run, "ip", "link", "del", f"m{first}", check=False)
        self.pe.ports = {**self.pe.ports, first: keys, second: keys}
        self.pe.reload()
        for n in (first, second):
            self.pe.wait_state(f"m{n}", "up")

    def broadcasts(self, count):
        for _ in range(count):
            self.pe.send(1, udp4(mac(1), BROADCAST, ip4(1), "255.255.255.255"))
            time.sleep(0.05)

    def test_2_a_loop_between_two_edge_ports_is_alarmed_and_shut(self):
        self.loop(11, 12, "macs: ['{mac}'], policy: chatty")
        self.broadcasts(10)
        wait_for("an alarm", lambda: self.logged(r"port m1[12].* frame from 02:00:00:00:00:01 \(port m1 .*came back, a loop"))
        ports = wait_for("one to be shut", lambda: [p for p in self.pe.show("ports") if p["port"] in ("m11", "m12")
                                                    and p["guard"]["closures"]])
        self.assertEqual(ports[0]["guard"]["loop"], "shut")
        seen = [v for v in ports[0]["violations"] if v["kind"] == "loop"]
        self.assertEqual(seen[0]["mac"], mac(1))
        self.assertIn("m1", seen[0]["owner"])
        # One copy each for the others, whatever the loop did.
        self.assertEqual(len(self.pe.received(2, is_from(1))), 10)
        # By itself it comes back.
        for name in ("m11", "m12"):
            self.pe.wait_state(name, "up")
        self.assertEqual(self.pe.state("m2"), "up")

    def test_2_a_loop_of_ports_that_take_any_source_multiplies_nothing(self):
        self.loop(13, 14, "macs: any, policy: chatty, security: {{ loop: drop }}")
        self.broadcasts(20)
        self.assertEqual(len(self.pe.received(2, is_from(1))), 20)
        self.assertGreaterEqual(sum(self.pe.drops(f"m{n}", "ingress").get("loop", 0) for n in (13, 14)), 20)
        self.assertEqual([self.pe.state(f"m{n}") for n in (13, 14)], ["up", "up"])

    def test_8_a_loop_that_lasts_closes_the_port_again_and_again_and_longer(self):
        self.loop(15, 16, "macs: any, policy: chatty")

        def closures():
            self.broadcasts(4)  # the member goes on
            return max(self.pe.port(f"m{n}")["guard"]["closures"] for n in (15, 16))
        wait_for("the third closure", lambda: closures() >= 3, 60)
        holds = {int(s) for s in self.logged(r"port m1[56] is shut because of a loop, for (\d+) s")}
        self.assertTrue({2, 4, 5} <= holds, holds)
        self.assertTrue(self.logged(r"port m1[56] is open again \(was closed because of a loop\)"))

    def test_4_two_lans_that_a_member_bridges(self):
        """A foreign LAN's sources never come in."""
        stranger = "02:00:00:00:aa:01"
        before = self.pe.drops("m2", "ingress").get("source-mac", 0)
        self.pe.send(2, *[udp4(stranger, BROADCAST, "198.51.100.1", "255.255.255.255")] * 20)
        wait_for("20 drops", lambda: self.pe.drops("m2", "ingress").get("source-mac", 0) - before == 20)
        for n in (1, 3):
            self.assertEqual(self.pe.received(n, lambda f: f[6:12] == octets(stranger)), [])
        self.assertEqual([f for f in self.pe.received("u1") if octets(stranger) in f], [])
        row = next(v for v in self.pe.show("violations") if v["mac"] == stranger)
        self.assertEqual((row["port"], row["kind"], row["reason"], row["member_name"]), ("m2", "macs", "source-mac", "Member 2"))
        self.assertTrue(self.logged(rf"port m2 \(AS64502 Member 2\): ingress frame from {stranger}: not a MAC address"))

    def test_5_after_a_storm_all_is_as_before(self):
        self.pe.storm(1, "broadcast", seconds=3, rate=50000)
        self.pe.drain()
        self.pe.send(2, *[udp4(mac(2), mac(3), ip4(2), ip4(3))] * 50)
        self.assertEqual(len(self.pe.received(3, is_from(2))), 50)
        self.pe.send(1, *[udp4(mac(1), mac(3), ip4(1), ip4(3))] * 50)
        self.assertEqual(len(self.pe.received(3, is_from(1))), 50)
        self.assertEqual(self.pe.state("m1"), "up")

    def test_11_a_sweep_of_arp_reaches_nobody(self):
        self.pe.send(1, *[arp(mac(1), ip4(1), ip4(n)) for n in range(2, 255)])
        answers = self.pe.received(1, lambda f: f[12:14] == b"\x08\x06")
        self.assertEqual({f[28:32][3] for f in answers}, {2, 3})  # the known ones
        self.assertEqual(self.pe.received(2, is_from(1)) + self.pe.received(3, is_from(1)), [])
        self.assertEqual([f for f in self.pe.received("u1") if octets(mac(1)) in f], [])

    def test_12_a_sweep_of_neighbor_solicitations_reaches_nobody(self):
        self.pe.send(1, *[guardkit.solicitation(mac(1), ip6(1), ip6(n)) for n in range(2, 255)])
        answers = self.pe.received(1, lambda f: f[12:14] == b"\x86\xdd" and f[54] == 136)
        self.assertEqual({f[62:78][15] for f in answers}, {2, 3})
        self.assertEqual(self.pe.received(2, is_from(1)) + self.pe.received(3, is_from(1)), [])

    def test_13_a_router_with_proxy_arp_answers_for_others(self):
        for operation, to in ((2, BROADCAST), (2, mac(3)), (1, BROADCAST)):
            self.pe.send(1, arp(mac(1), ip4(2), ip4(2) if to == BROADCAST else ip4(3), operation, to))
        self.assertEqual(self.pe.received(3, is_from(1)), [])
        row = wait_for("a violation", lambda: next((v for v in self.pe.show("violations")
                                                    if v["kind"] == "spoofing" and v["port"] == "m1"), None))
        self.assertEqual(row["mac"], mac(1))
        # It names port, member and address, and whose that is.
        self.assertTrue(self.logged(r"port m1 \(AS64501 Member 1\): ingress frame from 02:00:00:00:00:01.*address of another, 192\.0\.2\.2 "))

    def test_25_unknown_unicast_is_dropped_and_counted(self):
        before = self.pe.drops("m1", "ingress").get("unknown-unicast", 0)
        self.pe.send(1, *[udp4(mac(1), "02:00:00:00:ee:ee", ip4(1), ip4(77))] * 10)
        wait_for("10 drops", lambda: self.pe.drops("m1", "ingress").get("unknown-unicast", 0) - before == 10)
        self.assertEqual(self.pe.received(2, is_from(1)) + self.pe.received(3, is_from(1)), [])


class EgressCap(GuardCase):
    """Many senders, one receiver with a narrow cap: ARP and ND come first."""
    name = "plcap"
    senders = range(1, 11)
    node = """policies:
  sender: { ingress: { arp: { pps: 20 }, multicast: { pps: 100 } }, egress: { total: unlimited } }
  narrow: { egress: { arp: unlimited, multicast: unlimited, total: { bps: 60k, burst: 500ms } } }
"""
    profile = "off"
    ports = {**{n: "macs: ['{mac}'], policy: sender" for n in senders}, 20: "macs: ['{mac}'], policy: narrow"}
    speaker = False

    def test_30_fifty_senders_and_a_cap(self):
        """Ten stand for fifty, with a cap to scale: 10 x 10 ARP/s are 48 kbit/s of 60, and much multicast."""
        arps = {n: arp(mac(n), ip4(n), ip4(20)) for n in self.senders}
        group = {n: udp4(mac(n), "01:00:5e:09:09:09", ip4(n), "239.9.9.9", content=b"\0" * 150) for n in self.senders}
        seconds = 6
        began = time.monotonic()
        sent = 0
        while time.monotonic() - began < seconds:
            for n in self.senders:
                self.pe.send(n, arps[n], *[group[n]] * 5)
            sent += len(self.senders)
            time.sleep(max(0, began + sent / 100 - time.monotonic()))  # 100 ARP a second
        elapsed = time.monotonic() - began
        heard = self.pe.received(20)
        bits = 8 * sum(len(f) for f in heard)
        self.assertLessEqual(bits, 1.05 * (60000 * elapsed + 60000 * 0.5 + 8 * 1514))
        self.assertGreaterEqual(bits, 0.8 * 60000 * elapsed)
        resolved = [f for f in heard if f[12:14] == b"\x08\x06"]
        self.assertGreaterEqual(len(resolved), 0.9 * sent)  # no ARP had to wait for multicast
        limits = {(l["direction"], l["class"]): l["limit"] for l in self.pe.port("m20")["limits"]}
        self.assertEqual(limits[("egress", "total")], {"pps": None, "bps": 60000, "burst_ms": 500})


class ArpStorm(GuardCase):
    """Where unknown targets are flooded, a station that asks and asks is held to 20 a second."""
    name = "plarp"
    ports = {n: MEMBER for n in (1, 2, 3)}
    profile = "hybrid"

    def test_9_an_arp_storm_of_one_station(self):
        self.pe.storm(1, "arp", seconds=5, rate=5000)
        for n in (2, 3):
            self.assertLessEqual(len(self.pe.received(n, is_from(1))), 1.1 * (20 * 5 + 20))
        # Its own known targets are answered, within the agent's limit.
        self.pe.drain()
        self.pe.send(1, arp(mac(1), ip4(1), ip4(2)))
        self.assertEqual(len(self.pe.received(1, lambda f: f[12:14] == b"\x08\x06" and f[22:28] == octets(mac(2)))), 1)

    def test_6_the_daemon_goes_on_under_a_storm(self):
        before = {n["address"]: n["established_count"] for n in self.pe.show("neighbors")}
        self.pe.storm(1, "arp", seconds=5, rate=100000)
        self.assertEqual({n["address"]: n["established_count"] for n in self.pe.show("neighbors")}, before)
        self.assertEqual([n["state"] for n in self.pe.show("neighbors")], ["Established"])


class Reactions(GuardCase):
    """Graded: count, drop, quarantine, shut; each comes back by itself, later each time."""
    name = "plreact"
    ports = {1: MEMBER + PORT + "strict", 2: MEMBER, 3: MEMBER + ", policy: strict, security: {{ macs: count }}"}

    def closed(self, name, state, cause):
        port = self.pe.wait_state(name, state)
        self.assertEqual((port["guard"]["cause"], port["guard"]["state"]), (cause, state))
        return port

    def nothing_passes(self, n, reason):
        """Within its hold, which is short here: both directions at once."""
        before = self.pe.drops(f"m{n}", "ingress").get(reason, 0)
        self.pe.drain()
        self.pe.send(n, *[udp4(mac(n), mac(2), ip4(n), ip4(2))] * 5)
        self.pe.send(2, *[udp4(mac(2), mac(n), ip4(2), ip4(n))] * 5)
        self.assertEqual(self.pe.drops(f"m{n}", "ingress").get(reason, 0) - before, 5)
        self.assertEqual(self.pe.received(2, is_from(n)), [])
        self.assertEqual(self.pe.received(n, is_from(2)), [])

    def everything_passes(self, n):
        self.pe.wait_state(f"m{n}", "up")
        wait_for(f"{mac(n)} at m{n}", lambda: any(m["mac"] == mac(n) and m["port"] == f"m{n}" for m in self.pe.show("macs")))
        self.pe.drain()
        self.pe.send(n, udp4(mac(n), mac(2), ip4(n), ip4(2)))
        self.assertEqual(len(self.pe.received(2, is_from(n))), 1)

    def test_quarantine_for_foreign_macs_and_the_way_back(self):
        before = self.pe.port("m1")["guard"]["closures"]
        for hold in (3, 6):
            for i in range(5):
                self.pe.send(1, udp4(f"02:00:00:00:bb:0{i}", mac(2), ip4(1), ip4(2)))
            self.closed("m1", "quarantine", "macs")
            self.assertTrue(self.logged(rf"m1 \(AS64501 Member 1\) is put in quarantine because of frames of foreign MAC "
                                        rf"addresses, for {hold} s; 02:00:00:00:bb:0"), self.pe.log()[-2000:])
            if hold == 3:
                self.nothing_passes(1, "quarantine")
                self.assertFalse(any(m["port"] == "m1" for m in self.pe.show("macs")))  # withdrawn
            self.everything_passes(1)
        self.assertEqual(self.pe.port("m1")["guard"]["closures"] - before, 2)

    def test_shut_for_spoofing(self):
        for _ in range(5):
            self.pe.send(1, arp(mac(1), ip4(2), ip4(3), 1))
            time.sleep(0.05)
        self.closed("m1", "shut", "spoofing")
        self.nothing_passes(1, "shut")
        self.everything_passes(1)

    def test_quarantine_for_bpdus(self):
        self.pe.storm(1, "stp", seconds=0.5, rate=50)
        self.closed("m1", "quarantine", "protocols")
        self.everything_passes(1)

    def test_shut_for_a_storm(self):
        before = self.pe.port("m1")["guard"]["closures"]
        self.pe.storm(1, "broadcast", seconds=5, rate=5000)
        # It may be open again by now.
        wait_for("a closure", lambda: self.pe.port("m1")["guard"]["closures"] > before)
        self.assertTrue(self.logged(r"port m1 \(AS64501 Member 1\) is shut because of a storm"), self.pe.log()[-2000:])
        self.everything_passes(1)

    def test_count_lets_foreign_macs_pass(self):
        foreign = "02:00:00:00:cc:01"
        self.pe.send(3, *[udp4(foreign, mac(2), ip4(3), ip4(2))] * 5)
        self.assertEqual(len(self.pe.received(2, lambda f: f[6:12] == octets(foreign))), 5)
        self.assertEqual(self.pe.drops("m3", "ingress", "observed").get("source-mac"), 5)
        self.assertEqual(self.pe.state("m3"), "up")
        self.assertTrue(any(v["mac"] == foreign for v in self.pe.show("violations")))

    def test_drop_is_what_the_default_does(self):
        for i in range(20):
            self.pe.send(2, udp4(f"02:00:00:00:dd:{i:02x}", mac(1), ip4(2), ip4(1)))
        wait_for("violations", lambda: [v for v in self.pe.show("violations") if v["port"] == "m2"])
        self.assertEqual(self.pe.port("m2")["guard"]["closures"], 0)
        self.assertEqual(self.pe.state("m2"), "up")

    def test_flapping_links_are_damped(self):
        for _ in range(3):
            for state in ("down", "up"):
                self.pe.net.run("ip", "link", "set", "h1", state)
                wait_for(f"the link {state}", lambda s=state: self.pe.port("m1")["link"] == (s == "up"))
        self.closed("m1", "damped", "flaps")
        self.nothing_passes(1, "shut")
        self.everything_passes(1)

    def test_operators_close_and_open_a_port(self):
        self.assertIn("m1 is now shut", self.pe.peerlan("port", "m1", "shut").stdout)
        port = self.closed("m1", "shut", "operator")
        self.assertIsNone(port["guard"]["opens_in_seconds"])
        self.nothing_passes(1, "shut")
        self.pe.peerlan("port", "m1", "quarantine")
        self.closed("m1", "quarantine", "operator")
        self.pe.peerlan("port", "m1", "open")
        self.everything_passes(1)
        refused = self.pe.peerlan("port", "m9", "shut", check=False)
        self.assertEqual((refused.returncode, "there is no member port m9" in refused.stderr), (1, True))


class Quarantine(GuardCase):
    """A new port begins in quarantine; a reload lets it in."""
    name = "plquar"
    ports = {1: MEMBER + ", state: quarantine", 2: MEMBER, 3: MEMBER + PORT + "quarantine"}

    def test_3_a_port_in_quarantine(self):
        for n in (1, 3):
            port = self.pe.port(f"m{n}")
            self.assertEqual((port["state"], port["guard"]["cause"]), ("quarantine", "settings"))
        frames = self.pe.named_frames(("broadcast", "arp", "ns", "stp", "multicast", "unknown-unicast"), 1)
        frames["unicast"] = udp4(mac(1), mac(2), ip4(1), ip4(2))
        self.pe.drain()
        for frame in frames.values():
            self.pe.send(1, *[frame] * 5)
        self.assertEqual(self.pe.received(2, is_from(1)), [])
        self.assertEqual([f for f in self.pe.received("u1") if octets(mac(1)) in f], [])
        self.assertEqual(self.pe.drops("m1", "ingress").get("quarantine"), 5 * len(frames))
        self.assertEqual([m for m in self.pe.show("macs") if m["port"] in ("m1", "m3")], [])
        self.pe.send(2, udp4(mac(2), mac(1), ip4(2), ip4(1)))
        self.assertEqual(self.pe.received(1, is_from(2)), [])
        self.assertIn("by the settings", self.pe.peerlan("port", "m1", "open", check=False).stderr)
        # Let in.
        self.pe.ports = {**self.pe.ports, 1: MEMBER}
        self.pe.reload()
        self.pe.wait_state("m1", "up")
        self.pe.send(1, frames["unicast"])
        self.assertEqual(len(self.pe.received(2, lambda f: f == frames["unicast"])), 1)


class Kinds(GuardCase):
    """Every kind of frame, in every direction, through real ports: nothing unwanted enters, leaves or crosses."""
    name = "plkinds"
    node = """policies:
  open: { ingress: { arp: unlimited, nd: unlimited, broadcast: unlimited, multicast: unlimited, unknown-unicast: unlimited },
          egress: { arp: unlimited, nd: unlimited, broadcast: unlimited, multicast: unlimited, unknown-unicast: unlimited, total: unlimited },
          allow: [ra, rs, dhcp, dhcpv6, igmp, mld, ospf] }
"""
    domain = "    unknown-unicast: flood\n"
    ports = {1: MEMBER, 2: MEMBER, 3: MEMBER + PORT + "open"}
    # Kind -> its reason on ingress and decapsulation; those that a port with the policy "open" lets in, on egress too.
    LINK = {"stp": "stp", "lldp": "lldp", "lacp": "lacp", "cdp": "cdp"}
    NAMED = {"ra": "ra", "rs": "rs", "dhcp": "dhcp", "dhcpv6": "dhcpv6", "igmp": "igmp", "mld": "mld", "ospf": "ospf"}
    PLAIN = {"broadcast": "broadcast", "multicast": "multicast", "unknown-unicast": "unknown-unicast"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.frames = {n: cls.pe.named_frames({**cls.LINK, **cls.NAMED, **cls.PLAIN}, n) for n in (1, 3, 9)}

    def check(self, kinds, send, port, direction, listeners):
        for kind, reason in kinds.items():
            with self.subTest(kind, direction=direction):
                before = self.pe.drops(port, direction).get(reason, 0)
                self.pe.drain()
                source = send(kind)
                wait_for(f"5 {kind} counted as {reason}", lambda: self.pe.drops(port, direction).get(reason, 0) - before >= 5)
                for listener in listeners:
                    self.assertEqual([f for f in self.pe.received(listener, wait=0.1) if octets(source) in f], [], listener)

    def from_member(self, n):
        def send(kind):
            self.pe.send(n, *[self.frames[n][kind]] * 5)
            return mac(n)
        return send

    def test_ingress(self):
        self.check({**self.LINK, **self.NAMED, **self.PLAIN}, self.from_member(1), "m1", "ingress", (2, 3, "u1"))

    def test_egress(self):
        self.check({**self.NAMED, **self.PLAIN}, self.from_member(3), "m2", "egress", (1, 2))

    def test_encapsulation(self):
        self.check({**self.NAMED, **self.PLAIN}, self.from_member(3), "vx100", "encap", ("u1",))

    def test_decapsulation(self):
        def send(kind):
            self.pe.send("u1", *[vxlan(self.frames[9][kind])] * 5)
            return mac(9)
        self.check({**self.LINK, **self.NAMED, **self.PLAIN}, send, "vx100", "decap", (1, 2, 3))

    def test_other_ethertypes_in_all_directions(self):
        frame = ethernet(mac(2), mac(1), 0x88b5)
        self.pe.send(1, *[frame] * 5)
        wait_for("ingress", lambda: self.pe.drops("m1", "ingress").get("ethertype", 0) >= 5)
        self.pe.send("u1", *[vxlan(ethernet(mac(2), mac(9), 0x88b5))] * 5)
        wait_for("decap", lambda: self.pe.drops("vx100", "decap").get("ethertype", 0) >= 5)
        self.assertEqual(self.pe.received(2, lambda f: f[12:14] == b"\x88\xb5"), [])


class Tunnel(GuardCase):
    """Decapsulation: only VTEPs of the control plane, and none more than its share."""
    name = "pltun"
    node = POLICIES + """  core: { decap: { broadcast: unlimited }, per-vtep: { pps: 50, burst: 200ms } }
  loud: { egress: { broadcast: unlimited, total: unlimited } }
"""
    domain = "    core-policy: core\n"
    ports = {1: MEMBER + PORT + "loud", 2: MEMBER + PORT + "loud"}

    def vtep(self, address):
        return next((v for v in self.pe.show("underlay")["vteps"] if v["vtep"] == address), None)

    def test_14_a_rogue_vtep(self):
        self.other.announce_mac(mac(9))
        wait_for("its MAC", lambda: any(m["mac"] == mac(9) for m in self.pe.show("macs")))
        self.pe.send("u1", *[vxlan(udp4(mac(9), mac(1), ip4(9), ip4(1)))] * 5)
        self.assertEqual(len(self.pe.received(1, is_from(9))), 5)
        dropped = (self.vtep(None) or {"dropped_packets": 0})["dropped_packets"]
        for frame in (udp4(mac(9), mac(1), ip4(9), ip4(1)), arp(mac(9), ip4(9), ip4(1)),
                      udp4(mac(9), BROADCAST, ip4(9), "255.255.255.255")):
            self.pe.send("u1", *[vxlan(frame, ROGUE)] * 5)
        self.assertEqual(self.pe.received(1, is_from(9)), [])
        self.assertEqual(self.pe.received(2, is_from(9)), [])
        wait_for("15 drops", lambda: self.vtep(None)["dropped_packets"] - dropped == 15)
        self.assertTrue(self.vtep(REMOTE)["known"])
        self.assertEqual([d["protected"] for d in self.pe.show("underlay")["devices"]], [True])

    def test_each_vtep_has_its_limit(self):
        frame = vxlan(udp4(mac(9), BROADCAST, ip4(9), "255.255.255.255"))
        began = time.monotonic()
        sent = 0
        while time.monotonic() - began < 4:
            self.pe.send("u1", *[frame] * 20)
            sent += 20
            time.sleep(0.02)
        seconds = time.monotonic() - began
        heard = len(self.pe.received(1, is_from(9)))
        self.assertGreater(sent, 100 * seconds)
        self.assertLessEqual(heard, 1.05 * (50 * seconds + 10) + 1)
        self.assertGreaterEqual(heard, 0.7 * 50 * seconds)
        # Known unicast is not counted against it.
        self.pe.send("u1", *[vxlan(udp4(mac(9), mac(2), ip4(9), ip4(2)))] * 100)
        self.assertEqual(len(self.pe.received(2, lambda f: is_from(9)(f) and f[:6] == octets(mac(2)))), 100)

    def test_a_pe_that_is_withdrawn_is_no_vtep_any_more(self):
        self.other.close()
        wait_for("no VTEPs", lambda: not (self.vtep(REMOTE) or {"known": False})["known"])
        self.pe.send("u1", *[vxlan(udp4(mac(9), mac(1), ip4(9), ip4(1)))] * 5)
        self.assertEqual(self.pe.received(1, is_from(9)), [])
        type(self).other = guardkit.OtherPe(self.pe.net, SPEAKER)
        self.other.announce_flood()
        wait_for("the VTEP", lambda: (self.vtep(REMOTE) or {"known": False})["known"])
        self.pe.send("u1", *[vxlan(udp4(mac(9), mac(1), ip4(9), ip4(1)))] * 5)
        self.assertEqual(len(self.pe.received(1, is_from(9))), 5)


class Observe(GuardCase):
    """The same verdicts, counted, and nothing dropped."""
    name = "plobs"
    ports = {1: MEMBER + ", observe: true, security: {{ loop: shut, macs: shut, violations: 3 }}", 2: MEMBER}

    def test_a_port_that_only_observes(self):
        foreign = "02:00:00:00:cc:02"
        self.pe.drain()
        self.pe.send(1, *[udp4(foreign, mac(2), ip4(1), ip4(2))] * 5)
        self.assertEqual(len(self.pe.received(2, lambda f: f[6:12] == octets(foreign))), 5)
        port = self.pe.port("m1")
        self.assertEqual(port["observed_drops"].get("source-mac"), 5)
        self.assertNotIn("source-mac", port["drops"])
        self.assertEqual((port["state"], port["observe"]), ("up", True))
        wait_for("what the guard would do", lambda: self.pe.port("m1")["guard"]["observed_closures"] >= 1)
        self.assertTrue(self.logged(r"m1 \(AS64501 Member 1\) would be shut because of frames of foreign MAC"))
        self.pe.ports = {1: MEMBER, 2: MEMBER}
        self.pe.reload()
        self.pe.drain()
        self.pe.send(1, *[udp4(foreign, mac(2), ip4(1), ip4(2))] * 5)
        self.assertEqual(self.pe.received(2, lambda f: f[6:12] == octets(foreign)), [])

    def test_everywhere(self):
        self.pe.node = POLICIES + "observe: true\n"
        self.pe.reload()
        self.assertEqual({p["observe"] for p in self.pe.show("ports")}, {True})
        self.pe.drain()
        self.pe.send(2, *[udp4("02:00:00:00:cc:03", mac(1), ip4(2), ip4(1))] * 5)
        self.assertEqual(len(self.pe.received(1, lambda f: f[6:12] == octets("02:00:00:00:cc:03"))), 5)


class Live(GuardCase):
    """What changes while frames flow: settings, interfaces, allowed MACs."""
    name = "pllive"
    ports = {1: MEMBER, 2: MEMBER, 3: MEMBER}

    def test_a_reload_changes_limits_without_a_gap(self):
        """Under a flood of frames that must not pass, not one does; the programs stay the same."""
        stranger = "02:00:00:00:aa:02"
        before = self.pe.attachments("m1")
        flood = subprocess.Popen(["ip", "netns", "exec", self.pe.net.name, labkit.BUILD / "bin" / "peerlan-frames", "send",
                                  "broadcast", "h1", "--mac", stranger, "--ip", ip4(1), "--ip6", ip6(1), "--rate", "20000",
                                  "--seconds", "6"], stdout=subprocess.PIPE)
        changes = 0
        while flood.poll() is None:
            changes += 1
            self.pe.node = POLICIES + (f"  own: {{ ingress: {{ arp: {{ pps: {10 + changes % 50} }} }}, "
                                       f"allow: [{'mld' if changes % 2 else 'igmp'}] }}\n")
            self.pe.ports = {**self.pe.ports, 1: MEMBER + PORT + ("own" if changes % 3 else "peering")}
            self.assertIn("settings applied", self.pe.reload())
        self.assertGreater(changes, 5)
        for n in (2, 3):
            self.assertEqual(self.pe.received(n, lambda f: f[6:12] == octets(stranger)), [])
        self.assertEqual(self.pe.attachments("m1"), before)
        self.assertTrue(before)

    def test_new_limits_hold_at_once(self):
        self.pe.node = POLICIES + "  own: { ingress: { arp: { pps: 7, bps: 9k } }, egress: { total: { bps: 123k } } }\n"
        self.pe.ports = {**self.pe.ports, 1: MEMBER + PORT + "own"}
        self.pe.reload()
        limits = {(l["direction"], l["class"]): l["limit"] for l in self.pe.port("m1")["limits"]}
        self.assertEqual(limits[("ingress", "arp")], {"pps": 7, "bps": 9000, "burst_ms": 1000})
        self.assertEqual(limits[("egress", "total")]["bps"], 123000)

    def test_an_interface_that_vanishes_and_returns(self):
        self.pe.send(3, *[ethernet(mac(2), mac(3), 0x88b5)] * 7)
        wait_for("7 drops", lambda: self.pe.drops("m3", "ingress").get("ethertype") == 7)
        self.pe.net.run("ip", "link", "del", "m3")
        self.pe.wait_state("m3", "missing")
        self.pe.add_link(3)
        self.pe.wait_state("m3", "up")
        self.pe.send(3, *[ethernet(mac(2), mac(3), 0x88b5)] * 3)
        wait_for("10 drops", lambda: self.pe.drops("m3", "ingress").get("ethertype") == 10)
        self.assertEqual(self.pe.received(2, is_from(3)), [])

    def test_an_interface_that_is_renamed(self):
        self.pe.net.run("ip", "link", "set", "m3", "name", "old3")
        self.addCleanup(self.pe.net.run, "ip", "link", "set", "old3", "name", "m3", check=False)
        self.pe.wait_state("m3", "missing")
        # Without its programs it is no port of the bridge any more.
        wait_for("it to leave the bridge", lambda: "br100" not in self.pe.net.run("ip", "-o", "link", "show", "old3").stdout)
        self.pe.send(3, *[udp4("02:00:00:00:aa:03", BROADCAST, ip4(3), "255.255.255.255")] * 5)
        self.assertEqual(self.pe.received(2, wait=0.2), [])
        before = self.pe.net.run("ip", "-o", "link", "show", "old3").returncode
        self.assertEqual(before, 0)
        self.pe.net.run("ip", "link", "set", "old3", "name", "m3")
        self.pe.wait_state("m3", "up")
        self.pe.send(3, udp4(mac(3), mac(2), ip4(3), ip4(2)))
        wait_for("a frame", lambda: self.pe.received(2, is_from(3), wait=0.1) or self.pe.send(3, udp4(mac(3), mac(2), ip4(3), ip4(2))))

    def test_a_port_that_is_added_at_run_time(self):
        self.pe.add_link(4)
        self.addCleanup(self.pe.net.run, "ip", "link", "del", "m4", check=False)
        self.pe.ports = {**self.pe.ports, 4: MEMBER}
        self.pe.reload()
        self.pe.wait_state("m4", "up")
        self.pe.send(4, *[udp4("02:00:00:00:aa:04", BROADCAST, ip4(4), "255.255.255.255")] * 5)
        wait_for("5 drops", lambda: self.pe.drops("m4", "ingress").get("source-mac") == 5)

    def test_a_second_mac_for_a_while(self):
        second = "02:00:00:00:01:01"
        until = time.time() + 4
        self.pe.ports = {**self.pe.ports, 1: MEMBER.replace("'{mac}'", "'{mac}', {{ mac: '" + second + "', until: '" + time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(until)) + "' }}")}
        self.pe.reload()
        self.pe.drain()
        for source in (mac(1), second):
            self.pe.send(1, udp4(source, mac(2), ip4(1), ip4(2)))
        self.assertEqual({bytes(f[6:12]) for f in self.pe.received(2)}, {octets(mac(1)), octets(second)})
        port = self.pe.port("m1")
        self.assertEqual(port["temporary_macs"][0]["mac"], second)
        self.assertIn(second, port["macs"])
        wait_for("its end", lambda: second not in self.pe.port("m1")["macs"], 10)
        self.assertGreaterEqual(time.time(), int(until))
        before = self.pe.drops("m1", "ingress").get("source-mac", 0)
        self.pe.send(1, udp4(second, mac(2), ip4(1), ip4(2)))
        wait_for("a drop", lambda: self.pe.drops("m1", "ingress").get("source-mac", 0) == before + 1)
        self.assertEqual(self.pe.received(2), [])

    def test_an_empty_list_lets_nobody_in(self):
        self.pe.ports = {**self.pe.ports, 3: "macs: []"}
        self.pe.reload()
        self.pe.drain()
        self.pe.send(3, *[udp4(mac(3), mac(2), ip4(3), ip4(2))] * 5)
        wait_for("5 drops", lambda: self.pe.drops("m3", "ingress").get("source-mac", 0) >= 5)
        self.assertEqual(self.pe.received(2), [])


class Views(GuardCase):
    """What an operator asks, and is told."""
    name = "plview"
    ports = {1: MEMBER, 2: MEMBER}

    def test_explain_a_frame(self):
        frames = self.pe.named_frames(("stp", "ra", "broadcast", "arp"), 1)
        before = self.pe.port("m1")["frames"]
        for kind, reason in (("stp", "stp"), ("ra", "ra"), ("broadcast", "broadcast")):
            r = self.pe.peerlan("explain", "frame", frames[kind].hex(), "--port", "m1").stdout
            self.assertRegex(r, rf"octets at m1, ingress: dropped, {reason}", r)
            self.assertRegex(r, r"(?m)^  1\. ")
        text = udp4(mac(1), mac(2), ip4(1), ip4(2)).hex(":")
        self.assertIn("m1, ingress: passed", self.pe.peerlan("explain", "frame", text, "--port", "m1").stdout)
        self.assertIn("m2, egress: passed", self.pe.peerlan("explain", "frame", text, "--port", "m2", "--direction", "egress").stdout)
        self.assertIn("vx100, decap: dropped, stp", self.pe.peerlan("explain", "frame", frames["stp"].hex(), "--port", "vx100").stdout)
        # Nothing was counted.
        self.assertEqual(self.pe.port("m1")["frames"], before)
        # A capture file, each frame of it.
        file = self.pe.folder / "frames.pcap"
        file.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000") + b"".join(
            (0).to_bytes(8, "little") + len(f).to_bytes(4, "little") * 2 + f for f in frames.values()))
        told = self.pe.peerlan("explain", "frame", file, "--port", "m1").stdout
        self.assertEqual(len(re.findall(r"(?m)^frame \d+: ", told)), len(frames))
        for argv, code in ((("zz", "--port", "m1"), 2), (("00" * 20, "--port", "m7"), 1),
                           (("00" * 20, "--port", "m1", "--direction", "decap"), 1)):
            self.assertEqual(self.pe.peerlan("explain", "frame", *argv, check=False).returncode, code, argv)

    def test_all_about_a_port(self):
        self.pe.send(1, *[udp4("02:00:00:00:aa:05", mac(2), ip4(1), ip4(2))] * 3)
        wait_for("a violation", lambda: self.pe.port("m1")["violations"])
        text = self.pe.peerlan("show", "ports", "m1").stdout
        for piece in ("m1  peering  AS64501 Member 1", "up for", "MACs: 02:00:00:00:00:01", "ingress    arp", "20/s",
                      "egress     total", "1000 kbit/s", "source-mac", "02:00:00:00:aa:05", "loop shut"):
            self.assertIn(piece, text)
        self.assertIn("02:00:00:00:aa:05", self.pe.peerlan("show", "violations").stdout)
        self.assertIn("m1", self.pe.peerlan("show", "ports").stdout)

    def test_rates_and_a_report(self):
        def talk():
            self.pe.storm(1, "arp", seconds=1, rate=100)
            self.pe.storm(2, "stp", seconds=0.2, rate=50)
            rates = {(r["direction"], r["class"]): r for r in self.pe.port("m1")["rates"]}
            return rates.get(("ingress", "arp"), {"pps": 0})["pps"] > 20
        wait_for("a rate above the limit", talk)
        report = wait_for("an interval", lambda: talk() and self.pe.peerlan("report", "--intervals", "1").stdout, 30)
        def document():
            talk()
            import json
            r = json.loads(self.pe.peerlan("report", "--json").stdout)["report"]
            return r if any(not h["running"] for h in r["history"]) and any(
                t["port"] == "m1" and t["class"] == "arp" for t in r["talkers"]) else None
        r = wait_for("a whole interval", document, 60)
        talker = next(t for t in r["talkers"] if t["port"] == "m1" and t["class"] == "arp")
        self.assertEqual((talker["limit"]["pps"], talker["member_name"]), (20, "Member 1"))
        self.assertGreater(talker["peak_share"], 100)
        self.assertGreater(r["history"][0]["arp_per_minute"], 0)
        self.assertIn(("m2", "stp"), {(s["port"], s["reason"]) for s in r["sightings"]})
        report = self.pe.peerlan("report").stdout
        for piece in ("ARP/MIN", "Top talkers", "SEEN AND REFUSED", "m1", "stp"):
            self.assertIn(piece, report)


if __name__ == "__main__":
    unittest.main()
