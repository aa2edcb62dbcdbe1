# SPDX-License-Identifier: GPL-2.0-or-later
"""Failures that members must not notice: a daemon that crashes again and again, one of two reflectors that goes."""
import re
import signal
import subprocess
import time
import unittest

import labkit
import two_reflectors
from labkit import wait_for


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Failures(labkit.LabCase):
    name = "failures"

    def test_a_crash_loop_loses_nothing(self):
        with self.lab.probing((1, 2, 3, 5)) as results:
            for _ in range(5):
                self.lab.kill("pe1", signal.SIGKILL)
                self.lab.run("pe1", "peerlan-node", "start", "peerland")
                wait_for("the daemon", lambda: self.lab.pid("pe1"))
            # And one that dies as soon as it has a session.
            wait_for("a session", lambda: self.lab.in_service("pe1"), 30)
            self.lab.kill("pe1", signal.SIGKILL)
            self.lab.run("pe1", "peerlan-node", "start", "peerland")
            self.lab.wait_converged(60)
            time.sleep(1)
        self.assertEqual(labkit.lost(results), {})

    def map_sets(self):
        return set(self.lab.output("pe1", "find", "/sys/fs/bpf", "-name", "meta").split())

    @unittest.skipIf(not (labkit.BUILD / "bin" / "other" / "peerland").exists(), "the other build is not there")
    def test_an_upgrade_loses_nothing(self):
        """To another build, whose eBPF maps have another layout, and back: its programs take over port by port."""
        for other in (True, False):
            before = self.map_sets()
            with self.lab.probing((1, 2, 3, 5)) as results:
                time.sleep(0.3)
                self.lab.kill("pe1", signal.SIGTERM)
                self.lab.start_peerland("pe1", other)
                wait_for("it to be in service", lambda: self.lab.in_service("pe1"), 30)
                self.lab.wait_converged(60)
                time.sleep(1)
            self.assertEqual(labkit.lost(results), {})
            program = self.lab.output("pe1", "readlink", f"/proc/{self.lab.pid('pe1')}/exe").strip()
            self.assertEqual(program.endswith("/bin/other/peerland"), other, program)
            after = self.map_sets()
            self.assertEqual(len(after), 1)
            self.assertFalse(after & before)
            self.assertEqual({p["state"] for p in self.lab.show("pe1", "ports")}, {"up", "core"})


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Command(unittest.TestCase):
    def test_failures_are_measured_by_a_command(self):
        """bench/failover.sh, one of its cases, with both kinds of PE at the other end."""
        r = subprocess.run([str(labkit.ROOT / "bench" / "failover.sh"), "--case", "five reloads"], text=True, check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280)
        self.assertEqual(r.returncode, 0, r.stderr[-3000:])
        rows = re.findall(r"(?m)^\| five reloads .*? \| (\S+) \| ([\d,]+) \| (\d+) \|", r.stdout)
        self.assertEqual([(other, lost) for other, _, lost in rows], [("peerland", "0"), ("FRRouting", "0")], r.stdout)
        self.assertTrue(all(int(sent.replace(",", "")) > 1000 for _, sent, _ in rows), rows)


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class TwoReflectors(labkit.LabCase):
    name = "tworr"
    edit = two_reflectors.EDIT
    converge = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        two_reflectors.wait(cls.lab)

    def macs(self, pe):
        return sorted((m["mac"], m["where"], m["vtep"], m["sequence"]) for m in self.lab.show(pe, "macs"))

    def test_with_one_of_two_nothing_changes(self):
        """It is killed, and told to stop for good; no packet is lost, and no MAC is anywhere else, with FRRouting neither."""
        before = {pe: self.macs(pe) for pe in ("pe1", "pe2")}
        for node, number in (("rs1", signal.SIGKILL), ("monitor", signal.SIGTERM)):
            with self.lab.probing((1, 3, 5)) as results:
                time.sleep(0.3)
                two_reflectors.stop(self.lab, node, number)
                time.sleep(1)
                self.assertEqual({pe: self.macs(pe) for pe in ("pe1", "pe2")}, before)
                self.assertGreaterEqual(self.lab.vtysh("show evpn mac vni all").count("remote"), 4)
                two_reflectors.back(self.lab, node)
                time.sleep(0.5)
            self.assertEqual(labkit.lost(results), {}, node)
        self.assertEqual({pe: self.macs(pe) for pe in ("pe1", "pe2")}, before)


if __name__ == "__main__":
    unittest.main()
