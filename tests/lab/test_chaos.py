# SPDX-License-Identifier: GPL-2.0-or-later
"""A minute of chaos (chaos.py has more), then every PE is as the model. CHAOS_SECONDS and CHAOS_SEED in the
environment change it; the seed of a run that failed is in its message."""
import os
import time
import unittest

import chaos
import labkit


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Chaos(labkit.LabCase):
    name = "chaos"
    maxDiff = None

    def test_after_a_minute_every_pe_is_as_the_model(self):
        seconds, seed = float(os.environ.get("CHAOS_SECONDS", "60")), int(os.environ.get("CHAOS_SEED", "20261201"))
        self.assertEqual(chaos.wait_for_the_model(self.lab), [], "before the first event")
        events = chaos.plan(seed, seconds)
        self.assertEqual(events, chaos.plan(seed, seconds))  # the same again
        done = []
        left = chaos.Chaos(self.lab).run(events, lambda *words: done.append(words))
        self.assertEqual(len(done), len(events))
        self.assertEqual(left, [], f"seed {seed}, the last events: {done[-10:]}\n"
                         + "\n".join(f"--- {n}\n{self.lab.log(n)[-3000:]}" for n in chaos.NODES))
        # And it works: nothing is lost any more.
        with self.lab.probing((1, 3, 5), interval=5000) as results:
            time.sleep(2)
        self.assertEqual(labkit.lost(results), {})


if __name__ == "__main__":
    unittest.main()
