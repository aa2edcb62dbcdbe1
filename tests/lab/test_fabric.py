# SPDX-License-Identifier: GPL-2.0-or-later
"""The exchange as a whole: everybody reaches everybody, and all implementations see the same routes."""
import json
import re
import time
import unittest

import labkit
from labkit import MEMBERS, ip4, ip6, mac, pe_of, wait_for

EXABGP = """
process watch { run /bin/sh -c "cat > /run/exabgp.json"; encoder json; }
neighbor 10.0.0.9 {
  router-id 10.0.0.22; local-address 10.0.0.22; local-as 65000; peer-as 65000;
  family { l2vpn evpn; }
  api { processes [ watch ]; receive { parsed; update; } }
}
"""


@labkit.needs("peerland", "peerlan", "peerlan-frames", "gobgpd")
class Fabric(labkit.LabCase):
    name = "fabric"

    def test_all_members_reach_each_other_over_both_families(self):
        with self.lab.probing(MEMBERS, interval=20000) as results:
            time.sleep(2)
        self.assertEqual(labkit.lost(results), {})
        self.assertEqual(sorted(results), [f"m{n}" for n in MEMBERS])
        for document in results.values():
            self.assertEqual(len(document["targets"]), 10)
            self.assertTrue(all(t["received"] > 50 for t in document["targets"]), document)

    def test_large_packets_pass_unfragmented(self):
        for target in (ip4(3), ip4(5), ip6(4), ip6(6)):
            size = 1472 if "." in target else 1452
            self.lab.run("m1", "ping", "-c", "2", "-i", "0.2", "-W", "2", "-M", "do", "-s", size, target)

    def test_frrouting_shows_our_routes(self):
        def missing():
            table = self.lab.vtysh("show bgp l2vpn evpn")
            wanted = [f"[3]:[0]:[32]:[10.0.0.{p}]" for p in (1, 2)]
            for n in (1, 2, 3, 4):
                wanted += [f"[2]:[0]:[48]:[{mac(n)}]",
                           f"[2]:[0]:[48]:[{mac(n)}]:[32]:[{ip4(n)}]",
                           f"[2]:[0]:[48]:[{mac(n)}]:[128]:[{ip6(n)}]"]
            return [w for w in wanted if not re.search(r"\*>\s*i?" + re.escape(w) + r"(\s|$)", table, re.M)]
        wait_for("our routes in FRRouting", lambda: not missing())
        macs = self.lab.vtysh("show evpn mac vni all")
        for n in (1, 2, 3, 4):
            self.assertRegex(macs, rf"{mac(n)}\s+remote\s+(\S*\s+)?10\.0\.0\.{(n + 1) // 2}\b")
        cache = self.lab.vtysh("show evpn arp-cache vni all")
        for n in (1, 2, 3, 4):
            self.assertRegex(cache, rf"(?m)^{re.escape(ip4(n))}\s+remote")
            self.assertRegex(cache, rf"(?m)^{re.escape(ip6(n))}\s+remote")
        fdb = self.lab.output("pe3", "bridge", "fdb", "show", "dev", "vx100")
        for p in (1, 2):
            self.assertIn(f"00:00:00:00:00:00 dst 10.0.0.{p}", fdb)

    def test_we_show_the_routes_of_frrouting(self):
        for node in ("rs1", "pe1", "pe2"):
            routes = [r for r in self.lab.show(node, "routes") if r["next_hop"] == "10.0.0.3" and r["best"]]
            self.assertEqual(len([r for r in routes if r["type"] == 3]), 1, node)
            found = {(r["mac"], r["ip"]) for r in routes if r["type"] == 2}
            wanted = {(mac(n), ip) for n in (5, 6) for ip in (None, ip4(n), ip6(n))}
            self.assertEqual(found & wanted, wanted, node)
        for node in ("pe1", "pe2"):
            macs = {r["mac"]: r for r in self.lab.show(node, "macs")}
            for n in (5, 6):
                self.assertEqual((macs[mac(n)]["where"], macs[mac(n)]["vtep"]), ("remote", "10.0.0.3"))
            fdb = self.lab.output(node, "bridge", "fdb", "show", "dev", "vx100")
            for n in (5, 6):
                self.assertRegex(fdb, rf"{mac(n)} dst 10\.0\.0\.3 .*extern_learn")

    def test_flood_list_is_the_other_pes(self):
        for pe, others in (("pe1", {"10.0.0.2", "10.0.0.3"}), ("pe2", {"10.0.0.1", "10.0.0.3"})):
            fdb = self.lab.output(pe, "bridge", "fdb", "show", "dev", "vx100")
            self.assertEqual(set(re.findall(r"00:00:00:00:00:00 dst (\S+)", fdb)), others)

    def test_reflection_keeps_next_hop_and_says_who_began_it(self):
        for r in self.lab.show("pe2", "routes"):
            if r["next_hop"] == "10.0.0.1":
                self.assertEqual((r["originator_id"], r["cluster_list"]), ("10.0.0.1", ["10.0.0.9"]), r)

    def keys_of_rs1(self):
        return {(r["type"], r["rd"], r["mac"], r["ip"]) for r in self.lab.show("rs1", "routes") if r["best"]}

    def test_gobgp_receives_every_route(self):
        def keys_of_gobgp():
            text = self.lab.run("monitor", "gobgp", "global", "rib", "-a", "evpn", check=False).stdout
            keys = set()
            for m in re.finditer(r"\[type:macadv\]\[rd:([^\]]+)\]\[etag:\d+\]\[mac:([^\]]+)\]\[ip:([^\]]+)\]", text):
                keys.add((2, m[1], m[2], None if m[3] == "<nil>" else m[3]))
            for m in re.finditer(r"\[type:multicast\]\[rd:([^\]]+)\]\[etag:\d+\]\[ip:([^\]]+)\]", text):
                keys.add((3, m[1], None, m[2]))
            return keys
        wait_for("GoBGP's table to equal that of rs1",
                 lambda: len(self.keys_of_rs1()) >= 15 and self.keys_of_rs1() == keys_of_gobgp())

    @labkit.needs("exabgp")
    def test_exabgp_receives_every_route(self):
        (self.lab.folder / "exabgp.conf").write_text(EXABGP)
        exabgp = self.lab.start("monitor", "env", "exabgp.api.cli=false", "exabgp.daemon.user=root",
                                "exabgp", self.lab.folder / "exabgp.conf")
        self.addCleanup(labkit.stop, exabgp)

        def keys_of_exabgp():
            keys = set()
            for line in self.lab.run("monitor", "cat", "/run/exabgp.json", check=False).stdout.splitlines():
                update = json.loads(line)["neighbor"].get("message", {}).get("update", {})
                for routes in update.get("announce", {}).get("l2vpn evpn", {}).values():
                    keys |= {(r["code"], r["rd"], r.get("mac"), r.get("ip")) for r in routes}
            return keys
        wait_for("ExaBGP to have what rs1 has", lambda: self.keys_of_rs1() == keys_of_exabgp(), 60)

    def test_a_dead_port_is_withdrawn_and_comes_back(self):
        lab = self.lab
        lab.run("m4", "sysctl", "-qw", "net.ipv6.conf.eth1.keep_addr_on_down=1")
        self.addCleanup(lab.wait_converged)
        self.addCleanup(lab.run, "m4", "ip", "link", "set", "eth1", "up")
        lab.run("m4", "ip", "link", "set", "eth1", "down")
        wait_for("m4 to be withdrawn", lambda: all(
            mac(4) not in json.dumps([r for r in lab.show(node, "routes") if r["best"]])
            for node in ("rs1", "pe1")))
        wait_for("FRRouting to forget m4", lambda: mac(4) not in lab.vtysh("show evpn mac vni all"))
        self.assertNotIn(mac(4), lab.output("pe1", "bridge", "fdb", "show", "dev", "vx100"))
        self.assertEqual(pe_of(4), "pe2")

    def test_metrics_are_served(self):
        text = self.lab.output("pe1", "python3", "-c", "import urllib.request as u; "
                               "print(u.urlopen('http://127.0.0.1:9477/metrics', timeout=5).read().decode())")
        self.assertRegex(text, r"(?m)^peerlan_\w+(\{.*\})? \S+$")


if __name__ == "__main__":
    unittest.main()
