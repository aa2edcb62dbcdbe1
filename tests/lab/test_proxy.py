# SPDX-License-Identifier: GPL-2.0-or-later
"""Proxy ARP/ND: known targets are answered at the asker's port and nobody else hears of it; unknown ones
and gratuitous frames stay inside the policy. Once per responder."""
import time
import unittest

import labkit
from labkit import ARP_ND, MEMBERS, ip4, ip6, of_classes

PE_FILES = ("ixp/pe1.yaml", "ixp/pe2.yaml")


def replaced(old, new):
    return {path: lambda text: text.replace(old, new) for path in PE_FILES}


class ProxyTests:
    """The tests; the classes below give them a lab each."""

    def silent(self, counts, but=()):
        for name, document in counts.items():
            if name not in but:
                self.assertEqual(of_classes(document), {}, f"{name} heard ARP or ND")
                self.assertEqual(document["missed"], 0)

    def test_known_targets_are_answered_and_unheard(self):
        for asker, family in ((1, 4), (1, 6), (4, 4), (4, 6)):
            with self.subTest(asker=asker, family=family):
                others = [n for n in MEMBERS if n != asker]
                with self.lab.counting(others) as counts:
                    score = self.lab.ask(asker, family, count=1000, rate=500)
                self.assertEqual((score["sent"], score["answered"], score["wrong"], score["duplicate"]),
                                 (1000, 1000, 0, 0), score)
                self.silent(counts)

    def test_a_member_is_never_answered_for_its_own_address(self):
        self.lab.quiet_members()
        for family, address in ((4, ip4(1)), (6, ip6(1))):
            score = self.lab.frames("m1", "ask", "eth1", "--count", 5, "--timeout", 200, "--target",
                                    f"{address}={labkit.mac(1)}", check=False)
            self.assertEqual((score["answered"], score["wrong"]), (0, 0), family)

    def test_unused_targets_are_not_flooded(self):
        others = MEMBERS[1:]
        with self.lab.counting(others) as counts:
            for first in (ip4(100), ip6(100)):
                self.lab.frames("m1", "sweep", "eth1", "--first", first, "--count", 100, "--rate", 200)
            time.sleep(0.5)
        self.silent(counts)

    def test_gratuitous_frames_are_not_flooded(self):
        with self.lab.counting(MEMBERS[1:]) as counts:
            for kind in ("gratuitous-arp", "gratuitous-reply", "unsolicited-na"):
                self.lab.frames("m1", "send", kind, "eth1", "--count", 20, "--rate", 20)
            time.sleep(0.5)
        self.silent(counts)

    def test_a_claim_of_somebody_elses_address_changes_nothing(self):
        with self.lab.counting(MEMBERS[1:]) as counts:
            self.lab.frames("m1", "send", "gratuitous-arp", "eth1", "--ip", ip4(3), "--count", 5)
            self.lab.frames("m1", "send", "unsolicited-na", "eth1", "--ip6", ip6(3), "--count", 5)
            time.sleep(0.5)
        self.silent(counts)
        for family in (4, 6):
            score = self.lab.ask(2, family, count=20, rate=200)
            self.assertEqual((score["answered"], score["wrong"]), (20, 0), score)


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Ebpf(ProxyTests, labkit.LabCase):
    name = "proxy"

    def test_answers_come_from_the_kernel(self):
        def answered():
            return sum(f["packets"] for p in self.lab.show("pe1", "ports", "--port", "m1")
                       for f in p["frames"] if f["reason"] == "answered")
        before = answered()
        self.lab.quiet_members()
        self.lab.ask(1, 4, count=100)
        self.assertGreaterEqual(answered() - before, 100)


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Pcap(ProxyTests, labkit.LabCase):
    name = "pcap"
    edit = replaced("responder: ebpf", "responder: pcap")


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Dynamic(labkit.LabCase):
    """Where unknown targets and gratuitous frames may be flooded, they are, and within the policy."""
    name = "dynamic"
    edit = replaced("profile: static", "profile: dynamic")
    SECONDS = 6
    # "peering": ARP 20/s, ND 50/s, burst 1 s.
    LIMITS = {"arp-request": 20, "gratuitous-arp": 20, "ns": 50, "unsolicited-na": 50}

    def flood(self, *argv):
        self.lab.quiet_members()
        time.sleep(1.5)  # the buckets are full again
        with self.lab.counting(MEMBERS[1:]) as counts:
            self.lab.frames("m1", *argv, "--seconds", self.SECONDS)
            time.sleep(0.5)
        return counts

    def inside(self, counts, frame_class):
        limit = self.LIMITS[frame_class]
        for name, document in counts.items():
            copies = {"core-pe1": 2, "core-pe2": 0, "core-pe3": 0}.get(name, 1)  # one for each other PE
            heard = document["frames"].get(frame_class, 0)
            self.assertLessEqual(heard, copies * (1.1 * limit * self.SECONDS + limit), name)
            self.assertGreaterEqual(heard, copies * 0.5 * limit, f"{name}: nothing was flooded at all")

    def test_unused_targets(self):
        for first, frame_class in ((ip4(100), "arp-request"), (ip6(100), "ns")):
            with self.subTest(frame_class):
                self.inside(
                    self.flood("sweep", "eth1", "--first", first, "--count", 100, "--rate", 500), frame_class)

    def test_gratuitous_frames(self):
        for kind, frame_class in (("gratuitous-arp", "gratuitous-arp"), ("unsolicited-na", "unsolicited-na")):
            with self.subTest(kind):
                self.inside(self.flood("send", kind, "eth1", "--rate", 500), frame_class)

    def test_known_targets_are_still_unheard(self):
        for family in (4, 6):
            with self.lab.counting(MEMBERS[1:]) as counts:
                score = self.lab.ask(1, family, count=500, rate=500)
            self.assertEqual((score["answered"], score["wrong"], score["duplicate"]), (500, 0, 0), score)
            for name, document in counts.items():
                self.assertEqual(of_classes(document, ARP_ND), {}, name)


if __name__ == "__main__":
    unittest.main()
