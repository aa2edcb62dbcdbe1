# SPDX-License-Identifier: GPL-2.0-or-later
"""The namespace runner itself, and the plain exchange that demo.sh compares with."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import labkit
import netlab


def namespaces(lab):
    names = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
    return [n for n in names if n.startswith(f"clab-{lab.name}-")]


class Runner(unittest.TestCase):
    def lab(self, **kw):
        lab = labkit.Lab("run", "plain.clab.yml", **kw)
        self.addCleanup(lab.down)
        return lab

    def test_up_twice_exec_and_down_twice(self):
        lab = self.lab(only="pe1,m1").up()
        init = lab.state.nodes["m1"]["init"]
        self.assertIn("up already", lab.netlab("up", "--only", "pe1,m1").stdout)
        self.assertEqual(netlab.State(lab.name).nodes["m1"]["init"], init)
        self.assertEqual(lab.output("m1", "hostname").strip(), "m1")
        r = lab.netlab("exec", "m1", "--", "sh", "-c", "exit 7", check=False)
        self.assertEqual(r.returncode, 7)
        inits = [r["init"] for r in lab.state.nodes.values()]
        lab.netlab("down")
        lab.netlab("down")
        self.assertEqual(namespaces(lab), [])
        self.assertFalse(any(netlab.alive(i) for i in inits))
        self.assertFalse(pathlib.Path(lab.state.folder).exists())

    def test_nodes_do_not_see_each_other_or_the_machine(self):
        lab = self.lab(only="pe1,m1").up()
        lab.run("pe1", "sh", "-c", "touch /run/peerlan-secret /var/tmp/peerlan-secret /etc/frr/secret")
        for path in ("/run/peerlan-secret", "/var/tmp/peerlan-secret", "/etc/frr/secret"):
            self.assertFalse(os.path.exists(path), path)
            self.assertNotEqual(lab.run("m1", "test", "-e", path, check=False).returncode, 0, path)
        self.assertEqual(lab.output("m1", "ls", "/sys/class/net").split(), ["eth1", "lo"])
        self.assertEqual(lab.output("m1", "stat", "-f", "-c", "%T", "/sys/fs/bpf").strip(), "bpf_fs")
        self.assertNotIn("nsfs", lab.output("m1", "cat", "/proc/mounts"))

    def test_all_processes_of_a_node_end_with_it(self):
        lab = self.lab(only="pe1,m1").up()
        lab.run("m1", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
        inner = subprocess.Popen(["ip", "netns", "exec", lab.state.nodes["m1"]["netns"], "sleep", "1000"])
        self.addCleanup(inner.wait)
        self.addCleanup(inner.kill)
        wanted = lab.state.nodes["m1"]["netns"]
        labkit.wait_for("two sleeping processes", lambda: len(subprocess.run(
            ["ip", "netns", "pids", wanted], capture_output=True, text=True, check=False).stdout.split()) >= 3)
        pids = subprocess.run(["ip", "netns", "pids", wanted], capture_output=True, text=True,
                              check=True).stdout.split()
        lab.netlab("down")
        inner.wait(timeout=10)
        for pid in pids:
            self.assertIsNone(netlab.start_time(pid), f"process {pid} is left")

    def test_a_failing_exec_line_leaves_nothing(self):
        lab = self.lab(edit={"plain.clab.yml": lambda t: t.replace(
            "ip addr add 192.0.2.2/24 dev eth1", "ip addr add nonsense dev eth1")})
        r = lab.netlab("up", check=False)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("nonsense", r.stdout)
        self.assertEqual(namespaces(lab), [])

    def test_interrupted_up_leaves_nothing(self):
        # Before, during and after the making of nodes; the last ones may find the lab up.
        for delay in (0.2, 0.6, 1.2, 2.5):
            lab = self.lab()
            p = subprocess.Popen([sys.executable, str(labkit.ROOT / "lab" / "netlab.py"), "up",
                                  str(lab.file), "--name", lab.name],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            p.send_signal(signal.SIGINT)
            with self.subTest(delay=delay):
                if p.wait(timeout=60) == 0:
                    lab.netlab("down")
                self.assertEqual(namespaces(lab), [])
                self.assertFalse(pathlib.Path(netlab.STATE, lab.name).exists())

    def test_killed_up_is_cleaned_by_down(self):
        lab = self.lab()
        p = subprocess.Popen([sys.executable, str(labkit.ROOT / "lab" / "netlab.py"), "up",
                              str(lab.file), "--name", lab.name],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        labkit.wait_for("the first namespaces", lambda: len(namespaces(lab)) >= 2)
        p.kill()
        p.wait()
        lab.netlab("down")
        self.assertEqual(namespaces(lab), [])

    def test_two_labs_side_by_side(self):
        one, two = self.lab(only="pe1,m1,m2").up(), self.lab(only="pe1,m1,m2")
        two.name += "b"
        two.up()
        self.addCleanup(two.down)
        one.netlab("down")
        self.assertEqual(two.frames("m1", "probe", labkit.ip4(2), "--seconds", 0.2)["targets"][0]["lost"], 0)

    def test_wrong_files_are_refused(self):
        for change, text in (
                (lambda t: t.replace("core:pe1", "nowhere:pe1"), "unknown node"),
                (lambda t: t.replace("exec:", "startup-config:", 1), "unsupported"),
                (lambda t: t.replace("name: plain", "name: 'a/b'"), "lab name"),
                (lambda t: t.replace("links:", "links: ["), "not a containerlab file")):
            lab = self.lab(edit={"plain.clab.yml": change})
            command = [sys.executable, str(labkit.ROOT / "lab" / "netlab.py"), "up", str(lab.file)]
            if "lab name" not in text:
                command += ["--name", lab.name]
            r = subprocess.run(command, capture_output=True, text=True, check=False)
            with self.subTest(text=text):
                self.assertNotEqual(r.returncode, 0)
                self.assertIn(text, r.stderr)


@labkit.needs("peerlan-frames")
class Plain(labkit.LabCase):
    """Without peerlan everything reaches everybody: what the counters of the other tests would show."""
    name = "plain"
    file = "plain.clab.yml"
    converge = False

    def test_members_reach_each_other(self):
        with self.lab.probing(labkit.MEMBERS, interval=20000) as results:
            time.sleep(1)
        self.assertEqual(labkit.lost(results), {})
        self.assertTrue(all(t["sent"] > 10 for r in results.values() for t in r["targets"]))

    def test_an_unknown_target_is_heard_everywhere(self):
        with self.lab.counting() as counts:
            self.lab.frames("m1", "sweep", "eth1", "--first", labkit.ip4(100), "--count", 50)
            self.lab.frames("m1", "sweep", "eth1", "--first", labkit.ip6(100), "--count", 50)
        def heard(name, each):  # and perhaps a few that the members' own kernels ask
            for kind in ("arp-request", "ns"):
                self.assertIn(counts[name]["frames"].get(kind, 0), range(each, each + 10), (name, kind))
        for n in range(2, 7):
            heard(f"m{n}", 50)
        heard("core-pe1", 100)

    def test_answers_of_the_owners_are_right(self):
        for family in (4, 6):
            self.lab.quiet_members()
            flags = ["--na-flags", 0x60] if family == 6 else []  # the members' kernels are no routers
            r = self.lab.frames("m1", "ask", "eth1", *self.lab.targets(1, family), "--count", 200, *flags)
            self.assertEqual((r["answered"], r["wrong"], r["duplicate"]), (200, 0, 0), r)
            r = self.lab.frames("m1", "ask", "eth1", "--count", 20, "--timeout", 50, "--target",
                                f"{(labkit.ip4 if family == 4 else labkit.ip6)(2)}={labkit.mac(3)}",
                                check=False)
            self.assertEqual((r["answered"], r["wrong"]), (0, 20), r)


if __name__ == "__main__":
    unittest.main()
