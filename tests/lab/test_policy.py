# SPDX-License-Identifier: GPL-2.0-or-later
"""BUM policy: stray frames are delivered nowhere and counted under their own reason; a storm stays at the
port it came in at."""
import time
import unittest

import labkit
from labkit import MEMBERS, wait_for

# Frame of peerlan-frames -> reason of the drop.
STRAY = {"stp": "stp", "lldp": "lldp", "lacp": "lacp", "cdp": "cdp", "ra": "ra", "rs": "rs", "dhcp": "dhcp",
         "dhcpv6": "dhcpv6", "igmp": "igmp", "mld": "mld", "ospf": "ospf"}
CHATTY = """
policies:
  chatty:
    ingress:
      arp: { pps: 20 }
      nd: { pps: 50 }
      broadcast: { pps: 100 }
      multicast: { pps: 50 }
      unknown-unicast: drop
    egress:
      broadcast: { pps: 1000 }
    decap:
      broadcast: { pps: 1000 }
    encap:
      broadcast: { pps: 1000 }
    ethertypes: [ipv4, arp, ipv6]
"""


def chatty(text):
    return text.replace("\nbroadcast-domains:", CHATTY + "\nbroadcast-domains:").replace(
        "    policy: peering\n", "    policy: chatty\n    core-policy: chatty\n")


class StormCase(labkit.LabCase):
    def sessions(self):
        return {(node, n["address"]): (n["state"], n["established_count"])
                for node in ("rs1", "pe1", "pe2") for n in self.lab.show(node, "neighbors")
                if n["address"] in ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9")}

    def everything_works(self):
        self.lab.wait_converged()
        with self.lab.probing((1, 3, 5), interval=20000) as results:
            time.sleep(1)
        self.assertEqual(labkit.lost(results), {})
        for family in (4, 6):
            score = self.lab.ask(2, family, count=50, rate=200)
            self.assertEqual((score["answered"], score["wrong"], score["duplicate"]), (50, 0, 0), score)

    def storm(self, kind, seconds=5):
        before = self.sessions()
        with self.lab.counting(MEMBERS[1:]) as counts:
            sent = self.lab.frames("m1", "send", kind, "eth1", "--rate", 100000, "--seconds", seconds)
            time.sleep(0.5)
        # What the generator manages depends on who else uses the machine; far less is no storm.
        self.assertGreater(sent["sent"], 40000 * seconds, sent)
        self.assertEqual(self.sessions(), before)
        self.everything_works()
        return counts


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Policy(StormCase):
    name = "policy"

    def test_stray_frames_are_delivered_nowhere_and_counted(self):
        for kind, reason in STRAY.items():
            with self.subTest(kind):
                before = self.lab.drops("pe1", "m1", "ingress").get(reason, 0)
                with self.lab.counting(MEMBERS[1:]) as counts:
                    self.lab.frames("m1", "send", kind, "eth1", "--count", 30, "--rate", 300)
                    time.sleep(0.2)
                wait_for(f"30 drops as {reason}", lambda: self.lab.drops("pe1", "m1", "ingress").get(
                    reason, 0) - before >= 30, 5)
                wanted = "dhcp" if kind == "dhcpv6" else kind  # class of the counter
                for name, document in counts.items():
                    self.assertEqual(document["frames"].get(wanted, 0), 0, name)

    def test_a_foreign_source_mac_is_dropped(self):
        before = self.lab.drops("pe1", "m1", "ingress").get("source-mac", 0)
        with self.lab.counting(MEMBERS[1:]) as counts:
            for kind in ("broadcast", "arp", "unknown-unicast"):
                self.lab.frames("m1", "send", kind, "eth1", "--mac", "02:00:00:00:00:77", "--count", 10)
            time.sleep(0.2)
        self.assertEqual(self.lab.drops("pe1", "m1", "ingress")["source-mac"] - before, 30)
        for name, document in counts.items():
            for frame_class in ("other-broadcast", "arp-request", "unknown-unicast"):
                self.assertEqual(document["frames"].get(frame_class, 0), 0, name)

    def test_other_broadcast_multicast_and_unknown_unicast_are_dropped(self):
        for kind, reason, frame_class in (("broadcast", "broadcast", "other-broadcast"),
                                          ("multicast", "multicast", "other-multicast"),
                                          ("unknown-unicast", "unknown-unicast", "unknown-unicast")):
            with self.subTest(kind):
                before = self.lab.drops("pe1", "m2", "ingress").get(reason, 0)
                with self.lab.counting([n for n in MEMBERS if n != 2]) as counts:
                    self.lab.frames("m2", "send", kind, "eth1", "--count", 50, "--rate", 500)
                    time.sleep(0.2)
                self.assertEqual(self.lab.drops("pe1", "m2", "ingress").get(reason, 0) - before, 50)
                for name, document in counts.items():
                    self.assertEqual(document["frames"].get(frame_class, 0), 0, name)

    def test_a_broadcast_storm_reaches_nobody(self):
        for name, document in self.storm("broadcast").items():
            self.assertEqual(document["frames"].get("other-broadcast", 0), 0, name)

    def test_a_storm_of_arp_requests_reaches_nobody(self):
        for name, document in self.storm("arp").items():
            self.assertEqual(document["frames"].get("arp-request", 0), 0, name)


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Chatty(StormCase):
    """With a policy that lets some broadcast through."""
    name = "chatty"
    edit = {"ixp/pe1.yaml": chatty, "ixp/pe2.yaml": chatty}

    def test_a_storm_is_held_to_the_policy(self):
        counts = self.storm("broadcast")
        rate, burst, seconds = 100, 100, 5
        for n in (2, 3, 4, 5, 6):
            heard = counts[f"m{n}"]["frames"].get("other-broadcast", 0)
            self.assertLessEqual(heard, 1.1 * (rate * seconds + burst), f"m{n}")
            self.assertGreaterEqual(heard, 0.7 * rate * seconds, f"m{n}")


if __name__ == "__main__":
    unittest.main()
