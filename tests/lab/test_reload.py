# SPDX-License-Identifier: GPL-2.0-or-later
"""A reload is a difference: what it does not name goes on without a lost packet; it is shown before, refused when
most likely wrong, and undone when nobody confirms it."""
import json
import time
import unittest

import labkit
from labkit import wait_for

SECOND = """
  - name: second
    vni: 200
    bridge: br200
    vxlan: vx200
    profile: off
    responder: pcap
    ports: []
"""
NEIGHBOR = "    - { address: 10.0.0.20, group: route-servers, description: unused, local-address: 10.0.0.1, enabled: false }\n"
M2 = """      - interface: m2
        name: Bravo Net
        as: 64502
        macs: [02:00:00:00:00:02]
        addresses: [192.0.2.2, 2001:db8:1::2]
"""


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Reload(labkit.LabCase):
    name = "reload"
    maxDiff = None

    def setUp(self):
        self.yaml = self.lab.folder / "ixp" / "pe1.yaml"
        self.members = self.lab.folder / "ixp" / "members.json"
        self.was = self.yaml.read_text(), self.members.read_text()

    def tearDown(self):
        self.yaml.write_text(self.was[0])
        self.members.write_text(self.was[1])
        self.lab.run("pe1", "peerlan", "rollback", check=False)
        self.lab.run("pe1", "peerlan", "reload", "--force")
        self.lab.wait_converged()

    def replace(self, old, new):
        text = self.yaml.read_text()
        self.assertEqual(text.count(old), 1, old)
        self.yaml.write_text(text.replace(old, new))

    def peerlan(self, *words, check=True):
        return self.lab.run("pe1", "peerlan", *words, check=check)

    def diff(self):
        return json.loads(self.peerlan("diff", "--json").stdout)

    def changes(self):
        return [(c["change"], c["what"], c["name"]) for c in self.diff()["changes"]]

    def sessions(self):
        return {n["address"]: (n["established_count"], n["state"]) for n in self.lab.show("pe1", "neighbors")}

    def lossless(self, action, targets=labkit.MEMBERS):
        """The action, while these members talk with each other: none of their packets is lost, no session ends."""
        before = self.sessions()
        with self.lab.probing([n for n in (1, 5) if n in targets], targets=targets) as results:
            time.sleep(0.3)
            result = action()
            time.sleep(0.7)
        self.assertEqual(labkit.lost(results), {})
        after = self.sessions()
        self.assertEqual({a: s for a, s in after.items() if a in before},
                         {a: s for a, s in before.items() if a in after})
        return result

    # --- shown before
    def test_diff_shows_and_changes_nothing(self):
        self.assertEqual(self.diff()["changes"], [])
        self.replace("hold-time: 9", "hold-time: 12")
        self.replace(M2, "")
        self.assertEqual(self.changes(), [
            ("changed", "neighbor", "10.0.0.9 (rs1)"), ("removed", "port", "m2"),
            ("changed", "address", "192.0.2.2"), ("changed", "address", "2001:db8:1::2")])
        change = self.diff()["changes"][0]
        self.assertEqual(change["effect"], "the session starts again")
        self.assertEqual(change["fields"], [{"field": "hold-time", "before": "9s", "after": "12s"}])
        text = self.peerlan("diff").stdout
        self.assertIn("~ neighbor 10.0.0.9 (rs1): the session starts again\n    hold-time: 9s -> 12s\n", text)
        self.assertIn("- port m2 in peering\n", text)
        self.assertEqual([p["port"] for p in self.lab.show("pe1", "ports")], ["m1", "m2", "vx100"])

    def test_diff_says_what_is_wrong_or_refused(self):
        self.replace("vtep: 10.0.0.1", "vtep: 10.0.0.77")
        self.assertIn("vtep can't be changed while running", self.diff()["refused"])
        self.assertFalse(self.diff()["force_helps"])
        self.replace("vtep: 10.0.0.77", "vtep: nonsense")
        r = self.peerlan("diff", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stderr, r"peerland\.yaml:\d+:\d+: vtep")

    # --- one thing changes, the others don't notice
    def test_a_member_goes_changes_and_comes(self):
        others = (1, 3, 4, 5, 6)
        self.replace(M2, "")
        self.lossless(lambda: self.peerlan("reload"), others)
        self.assertEqual([p["port"] for p in self.lab.show("pe1", "ports")], ["m1", "vx100"])
        wait_for("the MAC to be gone from pe2", lambda: labkit.mac(2) not in
                 [m["mac"] for m in self.lab.show("pe2", "macs")])
        self.replace("      - interface: m1\n", M2.replace("Bravo", "Bravissimo") + "      - interface: m1\n")
        self.lossless(lambda: self.peerlan("reload"), others)
        self.lab.wait_converged()
        self.replace("Bravissimo Net\n", "Bravo Net\n")
        self.lossless(lambda: self.peerlan("reload"))

    def test_a_broadcast_domain_comes_changes_and_goes(self):
        def devices():
            return self.lab.output("pe1", "ip", "-o", "link", "show")
        self.yaml.write_text(self.yaml.read_text() + SECOND)
        self.assertIn("added broadcast domain second", self.lossless(lambda: self.peerlan("reload")).stdout)
        self.assertIn("vx200", devices())
        self.replace("vni: 200", "vni: 201")  # another VNI: it alone starts again
        self.assertEqual([c["effect"] for c in self.diff()["changes"]], ["the broadcast domain starts again"])
        self.assertIn("started again broadcast domain second", self.lossless(lambda: self.peerlan("reload")).stdout)
        self.assertEqual([d["vni"] for d in self.lab.show("pe1", "summary")["domains"]], [100, 201])
        self.yaml.write_text(self.was[0])
        self.assertIn("removed broadcast domain second", self.lossless(lambda: self.peerlan("reload")).stdout)
        self.assertNotIn("vx200", devices())

    def test_evpn_settings_change_under_way(self):
        """Another RD, other targets, other limits of duplicate detection, another MTU: no packet, no session."""
        self.replace("    mtu: 1500\n", "    mtu: 1400\n    rd: 65000:777\n    import-targets: [65000:100]\n"
                                     "    export-targets: [65000:100, 65000:4711]\n    duplicate-mac: { moves: 9 }\n")
        self.lossless(lambda: self.peerlan("reload"))
        domain = self.lab.show("pe1", "summary")["domains"][0]
        self.assertEqual((domain["rd"], domain["import_targets"], domain["export_targets"]),
                         ("65000:777", ["65000:100"], ["65000:100", "65000:4711"]))
        wait_for("only routes of the new RD at pe2", lambda: {
            r["rd"] for r in self.lab.show("pe2", "routes") if r["next_hop"] == "10.0.0.1"} == {"65000:777"})
        self.assertIn("mtu 1400", self.lab.output("pe1", "ip", "link", "show", "br100"))
        self.yaml.write_text(self.was[0])
        self.lossless(lambda: self.peerlan("reload"))
        self.assertEqual(self.lab.show("pe1", "summary")["domains"][0]["rd"], "10.0.0.1:100")

    def test_a_neighbor_comes_and_goes(self):
        self.replace("\nbroadcast-domains:", NEIGHBOR + "\nbroadcast-domains:")
        self.lossless(lambda: self.peerlan("reload"))
        self.assertIn("10.0.0.20", self.sessions())
        self.yaml.write_text(self.was[0])
        self.lossless(lambda: self.peerlan("reload"))
        self.assertNotIn("10.0.0.20", self.sessions())

    def test_a_policy_changes(self):
        self.replace("\nbroadcast-domains:", "\npolicies:\n  peering:\n    ingress:\n      arp: { pps: 33 }\n\nbroadcast-domains:")
        self.assertEqual(self.changes()[0][:2], ("changed", "policy"))
        self.lossless(lambda: self.peerlan("reload"))

    # --- refused, undone
    def test_a_cut_off_export_is_refused(self):
        export = json.loads(self.was[1])
        export["member_list"] = export["member_list"][:2]
        self.members.write_text(json.dumps(export))
        document = self.diff()
        self.assertEqual(document["members_removed"], [{"domain": "peering", "members": 6, "removed": 4}])
        self.assertTrue(document["force_helps"])
        r = self.peerlan("reload", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertIn("4 of the 6 members of peering would be removed, more than 20 %", r.stderr)
        self.assertIn("nothing was changed", r.stderr)
        bindings = len(self.lab.show("pe1", "bindings"))
        self.lab.run("pe1", "kill", "-HUP", self.lab.pid("pe1"))
        wait_for("SIGHUP to be refused, too", lambda: "reload: 4 of the 6 members" in self.lab.log("pe1"))
        self.assertEqual(len(self.lab.show("pe1", "bindings")), bindings)
        self.replace("\nbroadcast-domains:", "\nreload: { max-removed-members: 70 }\n\nbroadcast-domains:")
        self.assertIsNone(self.diff()["refused"])
        self.yaml.write_text(self.was[0])
        self.peerlan("reload", "--force")
        self.assertLess(len(self.lab.show("pe1", "bindings")), bindings)

    def test_unconfirmed_settings_go_by_themselves(self):
        self.replace("Alpha Net", "Omega Net")
        self.peerlan("reload", "--confirm", "2")
        self.assertIn("Omega Net", json.dumps(self.lab.show("pe1", "ports")))
        self.assertIsNotNone(self.lab.show("pe1", "summary")["confirm_seconds"])
        r = self.peerlan("reload", check=False)
        self.assertIn("not confirmed", r.stderr)
        wait_for("the former settings", lambda: "Alpha Net" in json.dumps(self.lab.show("pe1", "ports")))
        self.assertIsNone(self.lab.show("pe1", "summary")["confirm_seconds"])
        self.assertEqual({c["what"] for c in self.diff()["changes"]}, {"member", "port", "address"})
        self.assertIn("nobody confirmed them in time", self.lab.log("pe1"))
        self.assertEqual(self.peerlan("confirm", check=False).returncode, 1)

    def test_confirmed_settings_stay_and_rollback_is_at_once(self):
        self.replace("Alpha Net", "Omega Net")
        self.peerlan("reload", "--confirm", "600")
        self.peerlan("confirm")
        self.assertIsNone(self.lab.show("pe1", "summary")["confirm_seconds"])
        self.replace("Omega Net", "Psi Net")
        self.lossless(lambda: self.peerlan("reload", "--confirm", "600"))
        self.replace("Psi Net", "Chi Net")
        self.peerlan("reload", "--confirm", "600")  # a second one before the first is confirmed
        self.lossless(lambda: self.peerlan("rollback"))
        self.assertIn("Omega Net", json.dumps(self.lab.show("pe1", "ports")))


if __name__ == "__main__":
    unittest.main()
