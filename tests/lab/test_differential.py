# SPDX-License-Identifier: GPL-2.0-or-later
"""UPDATEs that other implementations stumbled over, and random mutations of right ones, through the daemon as a
route reflector. rfc7606.py, a second implementation, says what must come of each: the session's fate, and
what the other clients hold afterwards. All that is relayed must be well-formed; no other session notices."""
import os
import random
import socket
import struct
import unittest

import labkit
import rfc7606
from scripted import DAEMON, KEEPALIVE, UPDATE, Peer, Reflector, peer_address

NEIGHBORS = 430
MUTATIONS = 500
SEED = int(os.environ.get("PEERLAN_SEED", 20261130))


def attribute(flags, code, value):
    if len(value) > 255:
        return struct.pack("!BBH", flags | 0x10, code, len(value)) + value
    return struct.pack("!BBB", flags, code, len(value)) + value


def rd(n=7):
    return struct.pack("!H4sH", 1, socket.inet_aton("10.0.0.21"), n)


def nlri(kind, body):
    return bytes([kind, len(body)]) + body


def mac_route(mac, label=100, esi=b"\0" * 10, ip=b"", rd_number=7, more=b"", tag=0):
    return nlri(2, rd(rd_number) + esi + struct.pack("!I", tag) + b"\x30" + mac + bytes([len(ip) * 8]) + ip
                + label.to_bytes(3, "big") + more)


def mac_of(n):
    return b"\x02\0\0\1" + struct.pack("!H", n)


def imet(rd_number=7):
    return nlri(3, rd(rd_number) + b"\0\0\0\0\x20\x0a\0\0\x15")


ESI = bytes.fromhex("03443839ffff01000001")
TARGETS = struct.pack("!BBHI", 0, 2, 65000, 100) + struct.pack("!BBHI", 3, 0x0c, 0, 8)
ORIGIN, AS_PATH, LOCAL_PREF = attribute(0x40, 1, b"\0"), attribute(0x40, 2, b""), attribute(0x40, 5, b"\0\0\0\x64")
USUAL = ORIGIN + AS_PATH + LOCAL_PREF + attribute(0xc0, 16, TARGETS)
PMSI = attribute(0xc0, 22, bytes.fromhex("00060000640a000015"))


def reach(*routes, hop=b"\x0a\0\0\x15"):
    return attribute(0x80, 14, b"\0\x19\x46" + bytes([len(hop)]) + hop + b"\0" + b"".join(routes))


def unreach(*routes):
    return attribute(0x80, 15, b"\0\x19\x46" + b"".join(routes))


def update(*attributes):
    joined = b"".join(attributes)
    return struct.pack("!HH", 0, len(joined)) + joined


class Observer(Peer):
    """Keeps what it is sent: key -> (NLRI, attributes, next hop)."""

    def __init__(self, net, address):
        super().__init__(net, address)
        self.held = {}
        for kind, body in self.received:  # came before the session was confirmed
            if kind == UPDATE:
                self.take(kind, body)

    def take(self, kind, body):
        assert kind == UPDATE, (kind, body)
        verdict = rfc7606.well_formed(body)
        for key, route in verdict.routes.items():
            if route is None:
                self.held.pop(key, None)
            else:
                self.held[key] = (route, verdict.attributes, verdict.next_hop)

    def until(self, condition):
        """Reads until it holds; False when nothing more comes."""
        while not condition():
            got = self.next_message()
            if got is None:
                return False
            if got[0] != KEEPALIVE:
                self.take(*got)
        return True


@labkit.needs("peerland", "peerlan")
class Differential(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rr = Reflector("pldiff", [f"address: {peer_address(n)}, as: 65000, role: reflector-client, "
                                      "passive: true, connect-retry: 1" for n in range(NEIGHBORS)])
        cls.addClassCleanup(cls.rr.stop)
        cls.next = 2
        cls.observer = Observer(cls.rr.net, peer_address(0))
        cls.other = Peer(cls.rr.net, peer_address(1))
        cls.other.send(update(reach(mac_route(mac_of(1), rd_number=1)), USUAL))
        cls.marker = rfc7606.judge(update(reach(mac_route(mac_of(1), rd_number=1)), USUAL)).routes
        assert cls.observer.until(lambda: cls.observer.held.keys() == cls.marker.keys())
        cls.sender = None
        cls.model = {}  # of the sender's session: key -> (NLRI, attributes, next hop)

    def setUp(self):
        self.new_sender()

    def new_sender(self):
        cls = type(self)
        if cls.sender:
            cls.sender.close()
        cls.model = {}
        self.settle("the end of the session before")
        assert cls.next < NEIGHBORS, "more sessions than neighbors"
        cls.sender = Peer(self.rr.net, peer_address(cls.next))
        cls.next += 1

    def tearDown(self):
        self.assertTrue(self.rr.alive(), self.rr.log()[-3000:])
        self.settle("all")
        for peer in (self.observer, self.other):
            self.assertEqual(self.rr.state(peer.address), "Established")
            peer.send(b"", KEEPALIVE)

    # --- what the observer must hold
    def reflected(self, attributes):
        """RFC 4456 section 8; None: a loop, or not to be advertised (RFC 1997)."""
        out = {code: value for code, value in attributes.items() if code != 3}
        kind, clusters = out.get(10, (0x80, b""))
        own = socket.inet_aton(DAEMON)
        path = out[2][1]
        while path:
            count = path[1]
            if struct.pack("!I", 65000) in [path[2 + 4 * i:6 + 4 * i] for i in range(count)]:
                return None
            path = path[2 + 4 * count:]
        if own in [clusters[i:i + 4] for i in range(0, len(clusters), 4)] or out.get(9, (0, b""))[1] == own:
            return None
        communities = out.get(8, (0, b""))[1]
        if b"\xff\xff\xff\x02" in [communities[i:i + 4] for i in range(0, len(communities), 4)]:
            return None
        out[10] = (kind, own + clusters)
        out.setdefault(9, (0x80, socket.inet_aton(self.sender.address)))
        return out

    def expect(self, verdict):
        for key, route in verdict.routes.items():
            self.model.pop(key, None)
            if route is not None:
                attributes = self.reflected(verdict.attributes)
                if attributes is not None:
                    self.model[key] = (route, attributes, verdict.next_hop)

    def settle(self, what):
        def same():
            ours = {k: v for k, v in self.observer.held.items() if k not in self.marker}
            return ours == self.model and self.marker.keys() <= self.observer.held.keys()
        if not self.observer.until(same):
            held = {k: v for k, v in self.observer.held.items() if k not in self.marker}
            for key in held.keys() | self.model.keys():
                if held.get(key) != self.model.get(key):
                    self.fail(f"after {what}: route {key.hex()}\n  held: {held.get(key)}\n  must: {self.model.get(key)}\n"
                              + self.rr.log()[-1000:])
            self.fail(f"after {what}: the other client's route is gone")

    def through(self, body):
        """Sends the UPDATE; the verdict, when everything was as it says."""
        verdict = rfc7606.judge(body)
        self.sender.send(body)
        if verdict.fate == rfc7606.RESET:
            code = self.sender.notification()
            self.assertTrue(code and code[0] in (1, 3), f"NOTIFICATION {code} after {body.hex()}")
            self.model.clear()
            self.settle(f"the reset after {body.hex()}")
            self.new_sender()
        else:
            self.expect(verdict)
            # One more change behind it tells that it was worked off, whatever came of it.
            Differential.count = getattr(Differential, "count", 0) + 1
            marker = update(reach(mac_route(mac_of(Differential.count % 2), label=Differential.count, rd_number=2)), USUAL)
            self.sender.send(marker)
            self.expect(rfc7606.judge(marker))
            self.settle(body.hex())
        return verdict

    # --- table 1b of the requirements
    def relayed(self, *routes, attributes=USUAL):
        """All these routes arrive as they were sent."""
        verdict = self.through(update(reach(*routes), attributes))
        self.assertEqual(verdict.fate, rfc7606.OK)
        held = [route for route, _, _ in self.observer.held.values()]
        for route in routes:
            self.assertIn(route, held)
        return next(iter(verdict.routes))

    def discarded(self, bad, attributes=USUAL):
        """Between two good routes, which arrive; the bad one does not, and is counted."""
        first, last = mac_route(mac_of(10)), mac_route(mac_of(11))
        verdict = self.through(update(reach(first, bad, last), attributes))
        self.assertEqual(verdict.fate, rfc7606.OK)
        held = [route for route, _, _ in self.observer.held.values()]
        self.assertTrue(first in held and last in held and bad not in held, held)
        self.assertEqual(self.counter("nlri_discarded"), 1)

    def counter(self, name):
        return next(n[name] for n in self.rr.show("neighbors") if n["address"] == self.sender.address)

    def reset(self, body, code):
        self.assertEqual(rfc7606.judge(body).fate, rfc7606.RESET)
        self.sender.send(update(reach(mac_route(mac_of(10))), USUAL))
        self.sender.send(body)
        self.assertEqual(self.sender.notification(), code)

    def treated_as_withdraw(self, attributes):
        route = mac_route(mac_of(10))
        self.relayed(route)
        verdict = self.through(update(reach(route), attributes))
        self.assertTrue(verdict.withdrawn_all)
        self.assertEqual(verdict.fate, rfc7606.OK)
        self.assertNotIn(route, [r for r, _, _ in self.observer.held.values()])
        self.assertEqual(self.counter("treated_as_withdraw"), 1)

    def test_mac_with_an_esi(self):
        self.relayed(mac_route(mac_of(10), esi=ESI))

    def test_vni_of_24_bits(self):
        self.relayed(mac_route(mac_of(10), label=0xABCDEF))

    def test_one_mac_under_two_rds(self):
        self.relayed(mac_route(mac_of(10), rd_number=7), mac_route(mac_of(10), rd_number=8))

    def test_imet_of_two_vnis(self):
        self.relayed(imet(7), attributes=USUAL + PMSI)
        self.relayed(imet(8), attributes=USUAL + PMSI.replace(b"\0\0\x64", b"\0\0\x65"))
        self.assertIn(imet(7), [r for r, _, _ in self.observer.held.values()])

    def test_label_and_esi_are_not_in_the_key(self):
        self.relayed(mac_route(mac_of(10)))
        key = self.relayed(mac_route(mac_of(10), label=200, esi=ESI))
        self.through(update(unreach(mac_route(mac_of(10), label=0))))
        self.assertNotIn(key, self.observer.held)

    def test_imet_without_pmsi(self):
        self.relayed(imet())

    def test_communities_that_are_not_known(self):
        # Bug 10 of the requirements: GoBGP treated 06/04, 06/08 and 06/7f as withdraw.
        for community in ("067f300000000000", "0604000205dc0000", "0608030000000000", "8001020304050607"):
            with self.subTest(community):
                value = bytes.fromhex(community)
                key = self.relayed(mac_route(mac_of(10)), attributes=ORIGIN + AS_PATH + attribute(0xc0, 16, TARGETS + value))
                self.assertEqual(self.observer.held[key][1][16], (0xc0, TARGETS + value))

    def test_an_unknown_transitive_attribute_is_marked_partial(self):
        key = self.relayed(mac_route(mac_of(10)), attributes=USUAL + attribute(0xc0, 200, b"\1\2\3"))
        self.assertEqual(self.observer.held[key][1][200], (0xe0, b"\1\2\3"))

    def test_partial_stays_set(self):
        # RFC 4271 section 5, also for attributes that we understand.
        key = self.relayed(mac_route(mac_of(10)), attributes=ORIGIN + AS_PATH + LOCAL_PREF + attribute(0xe0, 7, b"\0\0\xfc\0\x0a\0\0\1")
                           + attribute(0xe0, 8, b"\xfd\xe8\0\1") + attribute(0xe0, 16, TARGETS)
                           + attribute(0xe0, 22, PMSI[3:]) + attribute(0xe0, 32, b"\0\0\0\1" * 3))
        for code in (7, 8, 16, 22, 32):
            self.assertEqual(self.observer.held[key][1][code][0], 0xe0, code)

    def test_types_1_4_and_5(self):
        self.relayed(nlri(1, rd() + ESI + b"\xff\xff\xff\xff\0\0\0"), nlri(1, rd() + ESI + b"\0\0\0\0\xab\xcd\xef"),
                     nlri(4, rd() + ESI + b"\x20\x0a\0\0\x15"),
                     nlri(5, rd() + b"\0" * 14 + b"\x18\x0a\1\2\0" + b"\x0a\0\0\x15" + b"\0\x13\x88"))

    def test_type_5_with_esi_and_gateway(self):
        """RFC 9136 section 3.1: treated as withdrawn, the others in the UPDATE are not."""
        good = nlri(5, rd() + b"\0" * 14 + b"\x18\x0a\1\2\0" + b"\x0a\0\0\x15" + b"\0\x13\x88")
        key = self.relayed(good)
        bad, other = good[:10] + ESI + good[20:], mac_route(mac_of(10))
        self.through(update(reach(bad, other), USUAL))
        held = [route for route, _, _ in self.observer.held.values()]
        self.assertNotIn(key, self.observer.held)
        self.assertIn(other, held)
        self.assertEqual(self.counter("nlri_discarded"), 1)

    def opaque(self):
        smet = rd() + b"\0\0\0\0" + b"\0" + b"\x20\xe0\0\1\5" + b"\x20\x0a\0\0\x15"
        sync = rd() + ESI + b"\0\0\0\0" + b"\0" + b"\x20\xe0\0\1\5" + b"\x20\x0a\0\0\x15"
        return [nlri(6, smet + b"\7"), nlri(7, sync + b"\4"), nlri(8, sync + b"\0\0\0\1\x0a\4"),
                nlri(9, rd() + b"\0" * 12), nlri(10, smet), nlri(11, imet() + b"\x20\x0a\0\0\x15")]

    def test_types_6_to_11_between_two_macs(self):
        self.relayed(mac_route(mac_of(10)), *self.opaque(), mac_route(mac_of(11)))

    def test_flags_of_type_6_are_not_in_the_key(self):
        smet = self.opaque()[0]
        self.relayed(smet)
        self.relayed(smet[:-1] + b"\2")
        self.assertNotIn(smet, [r for r, _, _ in self.observer.held.values()])

    def test_type_99_between_two_macs(self):
        self.discarded(nlri(99, rd() + b"\1\2\3"))

    def test_mac_length_47(self):
        bad = bytearray(mac_route(mac_of(12)))
        bad[24] = 47
        self.discarded(bytes(bad))

    def test_ip_length_24(self):
        self.discarded(nlri(2, rd() + b"\0" * 14 + b"\x30" + mac_of(12) + b"\x18" + b"\x0a\1\2" + b"\0\0\x64"))

    def test_ip_length_32_without_address(self):
        # Bug 25: GoBGP 3.10 ends as a whole.
        self.discarded(nlri(2, rd() + b"\0" * 14 + b"\x30" + mac_of(12) + b"\x20" + b"\0\0\x64"))

    def test_multicast_and_zero_mac(self):
        self.relayed(mac_route(b"\xff" * 6), mac_route(b"\1\0\x5e\0\0\1"), mac_route(b"\0" * 6))

    def test_pmsi_type_12(self):
        value = bytes.fromhex("000c0000640a000015")
        key = self.relayed(imet(), attributes=USUAL + attribute(0xc0, 22, value))
        self.assertEqual(self.observer.held[key][1][22], (0xc0, value))

    def test_pmsi_of_4_octets(self):
        self.treated_as_withdraw(USUAL + attribute(0xc0, 22, b"\0\6\0\0"))

    def test_extended_communities_of_7_octets(self):
        self.treated_as_withdraw(ORIGIN + AS_PATH + LOCAL_PREF + attribute(0xc0, 16, TARGETS[:7]))

    def test_nlri_overrun(self):
        self.reset(update(reach(mac_route(mac_of(10))[:-1]), USUAL), (3, 9))

    def test_next_hop_of_5_octets(self):
        self.reset(update(reach(mac_route(mac_of(10)), hop=b"\x0a\0\0\x15\0"), USUAL), (3, 9))

    def test_mp_reach_twice(self):
        self.reset(update(reach(mac_route(mac_of(10))), reach(mac_route(mac_of(11))), USUAL), (3, 1))

    def test_pmsi_is_relayed_byte_for_byte(self):
        # Bug 7: a lost or changed label keeps a VTEP out of the flood lists.
        for value in ("0006abcdef0a000015", "0106fffffe0a000015", "0006000064" + "20010db8" + "00" * 11 + "09"):
            key = self.relayed(imet(), attributes=USUAL + attribute(0xc0, 22, bytes.fromhex(value)))
            self.assertEqual(self.observer.held[key][1][22], (0xc0, bytes.fromhex(value)))

    # --- mutations
    def originals(self, r):
        macs = [mac_route(mac_of(r.randrange(20, 30)), esi=r.choice([b"\0" * 10, ESI]), ip=r.choice(
            [b"", b"\xc0\0\2\1", bytes.fromhex("20010db8" + "00" * 11 + "09")]), more=r.choice([b"", b"\0\0\7"]))
            for _ in range(r.randrange(1, 5))]
        rich = (attribute(0x40, 2, b"\2\2" + struct.pack("!II", 64512, 4200000000)) + attribute(0x80, 4, b"\0\0\0\7")
                + LOCAL_PREF + attribute(0x40, 6, b"") + attribute(0xc0, 7, b"\0\0\xfc\0\x0a\0\0\1")
                + attribute(0xc0, 8, bytes.fromhex("fde80001fde80002")) + attribute(0x80, 9, b"\x0a\0\0\x63")
                + attribute(0x80, 10, b"\x0a\0\0\x62") + attribute(0xc0, 16, TARGETS) + PMSI
                + attribute(0xc0, 32, struct.pack("!III", 65000, 1, 2)) + attribute(0xc0, 200, b"\1\2\3"))
        return r.choice([
            lambda: update(reach(*macs), USUAL),
            lambda: update(reach(*macs), ORIGIN, rich),
            lambda: update(ORIGIN, rich, reach(imet(), *self.opaque()[:2], *macs)),
            lambda: update(reach(imet(), hop=bytes.fromhex("20010db8" + "00" * 11 + "09")), USUAL, PMSI),
            lambda: update(unreach(*macs)),
            lambda: update(reach(macs[0]), unreach(*macs[1:], imet()), USUAL)])()

    @staticmethod
    def split(body):
        """The attributes of a right UPDATE."""
        out, rest = [], body[4:]
        while rest:
            head = 4 if rest[0] & 0x10 else 3
            end = head + int.from_bytes(rest[2:head], "big")
            out.append(rest[:end])
            rest = rest[end:]
        return out

    def mutate_attributes(self, r, body):
        attributes = self.split(body)
        at = r.randrange(len(attributes))
        one = bytearray(attributes[at])
        what = r.randrange(7)
        if what == 0:
            one[0] ^= 1 << r.randrange(4, 8)
        elif what == 1:
            one[1] = r.choice([1, 2, 3, 4, 5, 8, 9, 10, 14, 15, 16, 17, 22, 32, 40, r.randrange(256)])
        elif what == 2:
            one[2] = (one[2] + r.choice([-1, 1, 4])) & 0xff
        elif what == 3:
            attributes.append(bytes(one))
        elif what == 4:
            del attributes[at]
            return update(*attributes)
        elif what == 5:  # a shorter or longer value, lengths right
            head = 4 if one[0] & 0x10 else 3
            value = bytes(one[head:])
            value = value[:-r.randrange(1, 4)] if r.random() < 0.5 else value + r.randbytes(r.randrange(1, 9))
            one = bytearray(attribute(one[0] & 0xef, one[1], value))
        else:
            r.shuffle(attributes)
            return update(*attributes)
        attributes[at] = bytes(one)
        return update(*attributes)

    def mutation(self, r):
        body = self.originals(r)
        if r.random() < 0.5:
            body = self.mutate_attributes(r, body)
        else:
            octets = bytearray(body)
            for _ in range(r.randrange(1, 4)):
                at = r.randrange(len(octets))
                what = r.random()
                if what < 0.6:
                    octets[at] = r.choice([0, 1, 255, octets[at] ^ 1 << r.randrange(8), r.randrange(256)])
                elif what < 0.8:
                    del octets[at]
                else:
                    octets.insert(at, r.randrange(256))
            body = bytes(octets)
        # Shorter than an UPDATE can be is the header's error, which test_malformed has.
        return body if len(body) >= 4 else b"\0\0\0\0"

    def test_mutations(self):
        r = random.Random(SEED)
        fates = {}
        for n in range(MUTATIONS):
            body = self.mutation(r)
            with self.subTest(mutation=n, body=body.hex()):
                verdict = self.through(body)
                kind = verdict.fate if verdict.fate != rfc7606.OK else "withdraw" if verdict.withdrawn_all else "ok"
                fates[kind] = fates.get(kind, 0) + 1
            if n % 50 == 0:
                self.observer.send(b"", KEEPALIVE)
                self.other.send(b"", KEEPALIVE)
        self.assertEqual(sum(fates.values()), MUTATIONS)
        for kind in ("ok", "withdraw", "reset"):
            self.assertGreater(fates.get(kind, 0), 50, fates)


if __name__ == "__main__":
    unittest.main()
