# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast the daemon's netlink layer is beside raw batches of the same messages."""
import json
import os
import subprocess
import time
import unittest

import labkit

MACS = 100_000
ROUNDS = 3


@unittest.skipIf(not (labkit.BUILD / "bench" / "kernel_scale").exists(), "bench/ is not built")
class Scale(unittest.TestCase):
    ALONE = True

    def setUp(self):
        self.name = f"plscale{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.name], check=False)

    def run_inside(self, *argv):
        return subprocess.run(["ip", "netns", "exec", self.name, *map(str, argv)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def raw(self):
        """Seconds of nlbench to add and to remove."""
        for command in ("link add brx type bridge", "link add vxx type vxlan id 9 local 10.0.0.1 dstport 4789 nolearning",
                        "link set vxx master brx up", "link set brx up"):
            self.run_inside("ip", *command.split())
        times = []
        for words in (("fdb-add", "vxx", MACS, "02:20:00:00:00:00", "10.0.0.2"), ("fdb-del", "vxx", MACS, "02:20:00:00:00:00")):
            began = time.monotonic()
            self.run_inside(labkit.BUILD / "bench" / "nlbench", *words)
            times.append(time.monotonic() - began)
        for device in ("vxx", "brx"):
            self.run_inside("ip", "link", "del", device)
        return times

    def test_entries_go_in_and_out_in_batches(self):
        """100 000 remote MACs, the better of some rounds each, in turns. One by one they would take several times as
        long; the rates themselves are in docs/failover.md, by bench/failover.sh."""
        ours, raw = [], []
        for _ in range(ROUNDS):
            document = json.loads(self.run_inside(labkit.BUILD / "bench" / "kernel_scale", MACS))
            self.assertGreaterEqual(document["dumped"], 2 * MACS)
            ours.append((document["add_s"], document["remove_s"]))
            raw.append(self.raw())
        for what, at in (("add", 0), ("remove", 1)):
            mine, theirs = (min(run[at] for run in runs) for runs in (ours, raw))
            print(f"    {what} {MACS} MACs: {mine:.3f} s, nlbench {theirs:.3f} s")
            self.assertLess(mine, 3 * theirs, what)


if __name__ == "__main__":
    unittest.main()
