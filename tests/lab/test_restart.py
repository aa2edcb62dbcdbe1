# SPDX-License-Identifier: GPL-2.0-or-later
"""Fail static: a daemon that is killed, stopped or started again costs no packet, and afterwards the
kernel's state is what it was."""
import re
import sys
import time
import unittest

import labkit
from labkit import wait_for


def kernel_state(lab, node):
    """What a PE has in the kernel, without what changes by itself."""
    fdb = sorted(re.sub(r"\s+", " ", line).strip() for line in
                 lab.output(node, "bridge", "fdb", "show", "br", "br100").splitlines()
                 if "33:33:" not in line and "01:00:5e" not in line)
    flags = re.sub(r"\s+", " ", lab.output(node, "bridge", "-d", "link", "show"))
    flags = re.sub(r"state \S+|priority \S+|cost \S+", "", flags)
    links = re.sub(r"\b(state|qlen|link-netns\w*) \S+", "", lab.output(node, "ip", "-o", "link", "show"))
    pins = lab.output(node, "find", "/sys/fs/bpf", "-mindepth", "1")
    return {"fdb": fdb, "flags": flags, "links": links, "pins": sorted(pins.split())}


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Restart(labkit.LabCase):
    name = "restart"
    maxDiff = None
    SOURCES = (1, 2, 3, 5)  # on the PE that dies, beside it, and behind the other PEs
    # FRRouting 8.4 keeps no EVPN routes over a restart of its neighbor. Its members must not ask
    # meanwhile: answers that wait for an unreachable neighbour fill the kernel's ICMP socket, which
    # all namespaces share, and members that have nothing to do with it answer no longer.
    OF_PEERLAND = (1, 2, 3, 4)

    def setUp(self):
        for node in ("rs1", "pe1", "pe2"):
            if self.lab.pid(node) is None:
                self.lab.run(node, "peerlan-node", "start", "peerland")
        self.lab.wait_converged()

    def start_and_time(self, node):
        began = time.monotonic()
        self.lab.run(node, "peerlan-node", "start", "peerland")
        wait_for(f"{node} in service", lambda: self.lab.in_service(node), 60)
        return time.monotonic() - began

    def known_are_answered(self, asker=1):
        for family in (4, 6):
            score = self.lab.ask(asker, family, count=100, rate=500)
            self.assertEqual((score["answered"], score["wrong"], score["duplicate"]), (100, 0, 0), score)

    def outage(self, node, number, while_dead=lambda: None):
        before = kernel_state(self.lab, node)
        with self.lab.probing(self.SOURCES) as results:
            time.sleep(0.5)
            self.lab.kill(node, number)
            time.sleep(2)
            while_dead()
            took = self.start_and_time(node)
            self.lab.wait_converged(30)
            time.sleep(1)
        self.assertEqual(labkit.lost(results), {})
        self.assertTrue(all(t["sent"] > 2000 for r in results.values() for t in r["targets"]))
        print(f"    {node} in service again after {took:.1f} s", file=sys.stderr)
        after = wait_for("the kernel's state to be as before", lambda: (
            lambda now: now if now == before else None)(kernel_state(self.lab, node)), 20)
        self.assertEqual(after, before)

    def test_kill_of_a_pe_loses_nothing(self):
        self.outage("pe1", 9, self.known_are_answered)

    def test_stop_of_a_pe_loses_nothing(self):
        self.outage("pe1", 15, self.known_are_answered)

    def test_kill_of_the_reflector_loses_nothing(self):
        with self.lab.probing((1, 2, 3), targets=self.OF_PEERLAND) as results:
            self.lab.kill("rs1")
            time.sleep(2)
            self.lab.run("rs1", "peerlan-node", "start", "peerland")
            self.lab.wait_converged(60)
            time.sleep(1)
        self.assertEqual(labkit.lost(results), {})

    def test_a_hung_reflector_loses_nothing(self):
        """RFC 8538: routes survive the hold timer, where both sides said so."""
        pid = self.lab.pid("rs1")
        with self.lab.probing((1, 3), targets=self.OF_PEERLAND) as results:
            self.lab.run("rs1", "kill", "-STOP", pid)
            try:
                wait_for("pe1 to give the session up", lambda: not self.established("pe1"), 30)
                wait_for("pe2 to give the session up", lambda: not self.established("pe2"), 30)
                time.sleep(1)
            finally:
                self.lab.run("rs1", "kill", "-CONT", pid)
            wait_for("the session", lambda: self.established("pe1") and self.established("pe2"), 60)
            time.sleep(1)
        self.assertEqual(labkit.lost(results), {})

    def established(self, node):
        return all(n["state"] == "Established" for n in self.lab.show(node, "neighbors"))

    def test_detached_programs_are_attached_again(self):
        pins = self.lab.output("pe2", "find", "/sys/fs/bpf", "-path", "*/links/*").split()
        self.assertGreaterEqual(len(pins), 6)  # two ports and the VXLAN device, both ways
        self.lab.run("pe2", "rm", *pins)
        wait_for("the links", lambda: sorted(self.lab.output(
            "pe2", "find", "/sys/fs/bpf", "-path", "*/links/*").split()) == sorted(pins), 45)

    def test_a_change_of_the_kernel_behind_our_back_is_repaired(self):
        before = kernel_state(self.lab, "pe1")
        self.lab.run("pe1", "bridge", "fdb", "del", labkit.mac(3), "dev", "vx100", "dst", "10.0.0.2", "self")
        self.lab.run("pe1", "bridge", "fdb", "del", "00:00:00:00:00:00", "dev", "vx100", "dst", "10.0.0.3")
        self.lab.kill("pe1")
        self.start_and_time("pe1")
        wait_for("the repair", lambda: kernel_state(self.lab, "pe1")["fdb"] == before["fdb"], 60)


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Teardown(labkit.LabCase):
    name = "teardown"

    def clean(self, node):
        links = self.lab.output(node, "ip", "-o", "link", "show")
        self.assertNotIn("vx100", links)
        self.assertNotIn("br100", links)
        self.assertEqual(self.lab.output(node, "find", "/sys/fs/bpf", "-mindepth", "1", "-not", "-name", "*.debug"), "")
        for port in ("m1", "m2") if node == "pe1" else ("m3", "m4"):
            self.assertIn(port, links)
            for direction in ("ingress", "egress"):
                filters = self.lab.run(node, "tc", "filter", "show", "dev", port, direction, check=False).stdout
                self.assertNotIn("bpf", filters)

    def test_teardown_without_and_with_a_daemon(self):
        self.lab.kill("pe1", 15)
        self.assertIn("br100", self.lab.output("pe1", "ip", "-o", "link", "show"))
        self.lab.run("pe1", "peerlan", "teardown", "-c", "/etc/peerlan/peerland.yaml")
        self.clean("pe1")
        self.lab.run("pe2", "peerlan", "teardown")
        wait_for("peerland of pe2 to end", lambda: self.lab.pid("pe2") is None)
        self.clean("pe2")
        for node in ("pe1", "pe2"):
            self.lab.run(node, "peerlan-node", "start", "peerland")
        self.lab.wait_converged()
        with self.lab.probing((1, 3, 5), interval=20000) as results:
            time.sleep(1)
        self.assertEqual(labkit.lost(results), {})


if __name__ == "__main__":
    unittest.main()
