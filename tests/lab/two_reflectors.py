# SPDX-License-Identifier: GPL-2.0-or-later
"""The exchange of lab/ixp.clab.yml with a second reflector, rs2, in the node of the GoBGP monitor; every PE, the one
with FRRouting too, has a session with both."""
import json

import labkit
from labkit import wait_for

ADDRESSES = {"rs1": "10.0.0.9", "monitor": "10.0.0.20"}  # of the reflectors' nodes


def _peerland(text):
    local = "10.0.0.1" if "node: pe1" in text else "10.0.0.2"
    return text.replace("\nbroadcast-domains:", "    - { address: 10.0.0.20, group: route-servers, description: rs2, "
                                                f"local-address: {local} }}\n\nbroadcast-domains:")


def _frr(text):
    lines = text.splitlines()
    second = [line.replace("10.0.0.9", "10.0.0.20").replace("rs1", "rs2") for line in lines if " neighbor 10.0.0.9 " in line]
    outside = [line for line in second if "activate" not in line]
    inside = [line for line in second if "activate" in line]
    at = lines.index(" !")
    family = lines.index(" address-family l2vpn evpn") + 1
    return "\n".join([*lines[:at], *outside, *lines[at:family], *inside, *lines[family:]]) + "\n"


def _rs2(_):
    text = (labkit.ROOT / "lab" / "ixp" / "rs1.yaml").read_text()
    text = text.replace("node: rs1", "node: rs2").replace("10.0.0.9", "10.0.0.20")
    return "\n".join(line for line in text.splitlines() if "group: tests" not in line) + "\n"


def _topology(text):
    return text.replace("ixp/gobgpd.yaml:/etc/gobgp/gobgpd.yaml", "ixp/gobgpd.yaml:/etc/peerlan/peerland.yaml")


EDIT = {"ixp/pe1.yaml": _peerland, "ixp/pe2.yaml": _peerland, "ixp/pe3/frr.conf": _frr, "ixp/gobgpd.yaml": _rs2,
        "ixp.clab.yml": _topology}


def complete(lab):
    """Both sessions of all PEs stand, and each has brought the routes of both other PEs: a reflector that restarts
    sends none before its clients have sent theirs (RFC 4724), and FRRouting doesn't tell when that is."""
    rows = [row for pe in ("pe1", "pe2") for row in lab.show(pe, "neighbors") or [{"state": "", "routes_received": 0}]]
    try:
        peers = json.loads(lab.vtysh("show bgp l2vpn evpn summary json"))["peers"].values()
    except (ValueError, KeyError):
        return False
    return (all(n["state"] == "Established" and n["routes_received"] >= 16 for n in rows) and len(peers) == 2
            and all(p["state"] == "Established" and p["pfxRcd"] >= 18 for p in peers))


def wait(lab):
    """Until every PE knows all members by both reflectors."""
    wait_for("the routes by both reflectors", lambda: complete(lab), 90)
    lab.wait_converged()


def stop(lab, node, number):
    """Ends a reflector and waits until the PEs with peerland have noticed."""
    lab.kill(node, number)
    wait_for("the PEs to notice", lambda: all(n["state"] != "Established" for pe in ("pe1", "pe2")
                                              for n in lab.show(pe, "neighbors") if n["address"] == ADDRESSES[node]), 30)


def back(lab, node):
    lab.run(node, "peerlan-node", "start", "peerland")
    wait_for("its routes", lambda: complete(lab), 60)
