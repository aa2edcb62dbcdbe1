# SPDX-License-Identifier: GPL-2.0-or-later
"""The route reflector's binding guard and policies: a neighbor claims other members' addresses; the PEs hear
nothing of it. What the rules say may change while the sessions are up."""
import socket
import struct
import unittest

import labkit
import test_malformed as bgp

LIAR = "10.0.0.21"
GUARD = "\n      accept-policy: lan\n      binding-guard: reject\n"


def rules(text):
    """The reflector knows members 1 to 6 at their PEs, and number 7 anywhere."""
    members = "".join(
        f"        - {{ as: {64500 + n}, macs: ['{labkit.mac(n)}'], addresses: [{labkit.ip4(n)}, '{labkit.ip6(n)}'],"
        f" pes: [10.0.0.{labkit.pe_of(n)[2]}] }}\n" for n in labkit.MEMBERS)
    text = text.replace("  groups:\n", (
        "  policies:\n"
        "    lan: [{ route-type: [2, 3], route-target: 65000:100, vni: 100, then: accept }]\n"
        "    but-seven: [{ mac: 02:00:00:00:01:07, then: reject }, { then: accept }]\n"
        "  members:\n"
        "    - vni: 100\n"
        "      prefixes: [192.0.2.0/24, '2001:db8:1::/64']\n"
        "      list:\n" + members +
        "        - { as: 64507, macs: ['02:00:00:00:01:07'], addresses: [192.0.2.7] }\n"
        "  groups:\n"))
    return text.replace("role: reflector-client\n", "role: reflector-client" + GUARD)


def claim(octet, vni=100):
    """An UPDATE: 192.0.2.OCTET is at 02:00:00:00:01:OCTET, in VNI 100."""
    rd = struct.pack("!H4sH", 1, socket.inet_aton(LIAR), 7)
    nlri = (rd + b"\0" * 10 + b"\0" * 4 + b"\x30" + bytes([2, 0, 0, 0, 1, octet]) + b"\x20"
            + socket.inet_aton(f"192.0.2.{octet}") + struct.pack("!I", vni)[1:])
    reach = struct.pack("!HBB4sB", 25, 70, 4, socket.inet_aton(LIAR), 0) + bytes([2, len(nlri)]) + nlri
    attributes = (bgp.attribute(0x40, 1, b"\0") + bgp.attribute(0x40, 2, b"")
                  + bgp.attribute(0x40, 5, struct.pack("!I", 100))
                  + bgp.attribute(0xc0, 16, struct.pack("!BBHI", 0, 2, 65000, 100)
                                  + struct.pack("!BBHI", 3, 0x0c, 0, 8)) + bgp.attribute(0x80, 14, reach))
    return bgp.message(bgp.UPDATE, struct.pack("!HH", 0, len(attributes)) + attributes)


@labkit.needs("peerland", "peerlan")
class BindingGuard(labkit.LabCase):
    name = "guard"
    edit = {"ixp/rs1.yaml": rules}

    def claims(self, node):
        """Octet of each claim that the node has -> whether it is rejected there."""
        return {int(r["mac"][-2:], 16): bool(r["rejected"]) for r in self.lab.show(node, "routes", "--type", "2") or []
                if r["mac"].startswith("02:00:00:00:01:")}

    def sessions(self):
        return {n["address"]: (n["state"], n["established_count"]) for n in self.lab.show("rs1", "neighbors")
                if n["address"] in ("10.0.0.1", "10.0.0.2", "10.0.0.3", LIAR)}

    def reload(self, change):
        file = self.lab.folder / "ixp" / "rs1.yaml"
        text = change(file.read_text())
        self.assertNotEqual(text, file.read_text())
        file.write_text(text)
        self.lab.run("rs1", "peerlan", "reload")

    def both_pes(self, want):
        for pe in ("pe1", "pe2"):
            labkit.wait_for(f"the claims {want} at {pe}", lambda pe=pe: set(self.claims(pe)) == want)

    def test_claims(self):
        with bgp.Session(self.lab, LIAR) as liar:
            liar.establish()
            # 1: of another member, with a MAC of nobody; 99: of nobody; 7: as it should be.
            liar.send(claim(1) + claim(99) + claim(8, vni=200) + claim(7))
            labkit.wait_for("the claims at rs1", lambda: len(self.claims("rs1")) == 4)
            self.assertEqual(self.claims("rs1"), {1: True, 99: True, 8: True, 7: False})
            self.both_pes({7})
            # The PEs' own routes are as the members' list has them.
            own = [r for r in self.lab.show("rs1", "routes", "--type", "2") if r["neighbor"] != "10.0.0.21 (second speaker)"]
            self.assertGreaterEqual(len(own), 6)
            self.assertEqual([r for r in own if r["rejected"]], [])
            before = self.sessions()

            with self.subTest("flag: let through"):
                liar.send(bgp.message(bgp.KEEPALIVE))
                self.reload(lambda text: text.replace("binding-guard: reject", "binding-guard: flag"))
                self.both_pes({1, 7, 99})  # 8 is another VNI's, by policy
                self.assertEqual(self.claims("rs1"), {1: False, 99: False, 8: True, 7: False})

            with self.subTest("reject: taken back"):
                liar.send(bgp.message(bgp.KEEPALIVE))
                self.reload(lambda text: text.replace("binding-guard: flag", "binding-guard: reject"))
                self.both_pes({7})

            with self.subTest("a list of members that knows more"):
                liar.send(bgp.message(bgp.KEEPALIVE))
                self.reload(lambda text: text.replace(
                    "  groups:\n", "        - { macs: ['02:00:00:00:01:63'], addresses: [192.0.2.99] }\n  groups:\n"))
                self.both_pes({7, 99})

            with self.subTest("a send policy of one PE"):
                liar.send(bgp.message(bgp.KEEPALIVE))
                self.reload(lambda text: text.replace("description: pe2 }", "description: pe2, send-policy: but-seven }"))
                labkit.wait_for("7 to go from pe2", lambda: set(self.claims("pe2")) == {99})
                self.assertEqual(set(self.claims("pe1")), {7, 99})

            # Nobody's session noticed.
            self.assertEqual(self.sessions(), before)
            self.assertEqual({state for state, _ in before.values()}, {"Established"})


if __name__ == "__main__":
    unittest.main()
