# SPDX-License-Identifier: GPL-2.0-or-later
"""A wrong settings file: every section has an error with file, line and column; the exit code is not 0;
a running daemon refuses it and goes on."""
import pathlib
import subprocess
import tempfile
import unittest

import labkit

PE1 = (labkit.ROOT / "lab" / "ixp" / "pe1.yaml").read_text()
POLICIES = """
policies:
  chatty:
    ingress:
      arp: { pps: 50, burst: 500ms }
  deaf:
    ethertypes: [arp, ipv6]
"""
# Section -> (text of the file, what is there, what is written instead); the error must point at that line.
WRONG = {
    "syntax": ("as: 65000\nvtep", "as: [65000\nvtep"),
    "node: an unknown key": ("router-id: 10.0.0.1\n", "router-id: 10.0.0.1\nrouterid: 10.0.0.1\n"),
    "node: router id": ("router-id: 10.0.0.1", "router-id: 10.0.0.256"),
    "node: AS": ("as: 65000\nvtep", "as: 4294967296\nvtep"),
    "node: VTEP": ("vtep: 10.0.0.1", "vtep: pe1.example"),
    "log": ("level: info", "level: loud"),
    "control": ("socket: /run", "sockets: /run"),
    "metrics": ("listen: 127.0.0.1:9477", "listen: 127.0.0.1:94777"),
    "bgp: listen": ("    - address: 10.0.0.1\n", "    - address: 10.0.0\n"),
    "bgp: group": ("hold-time: 9", "hold-time: 2"),
    "bgp: role": ("role: peer", "role: friend"),
    "bgp: neighbor": ("group: route-servers,", "group: route-server,"),
    "policies: rate": ("arp: { pps: 50,", "arp: { pps: many,"),
    "policies: burst": ("burst: 500ms", "burst: 5s"),
    "policies: percent": ("arp: { pps: 50,", "arp: { pps: 1%,"),
    "policies: zero burst": ("burst: 500ms", "burst: 0ms"),
    "port: cut off from BGP": ("macs: [02:00:00:00:00:01]\n", "macs: [02:00:00:00:00:01]\n        policy: deaf\n"),
    "port: cut off from LACP": ("macs: [02:00:00:00:00:01]\n", "macs: [02:00:00:00:00:01]\n        policy: peering\n        lacp: true\n"),
    "broadcast domain: VNI": ("vni: 100", "vni: 16777216"),
    "broadcast domain: prefix": ("192.0.2.0/24,", "192.0.2.0/33,"),
    "broadcast domain: profile": ("profile: static", "profile: statik"),
    "broadcast domain: responder": ("responder: ebpf", "responder: bpf"),
    "broadcast domain: member file": ("ixf: members.json", "ixf: nobody.json"),
    "port: MAC": ("macs: [02:00:00:00:00:01]", "macs: [02:00:00:00:00]"),
    "port: address": ("addresses: [192.0.2.1,", "addresses: [192.0.2.1.1,"),
    "port: policy": ("policy: peering", "policy: pering"),
}


def wrong_text(old, new):
    text = PE1.replace("\nbroadcast-domains:", POLICIES + "\nbroadcast-domains:")
    assert text.count(old) >= 1, old
    text = text.replace(old, new, 1)
    changed = new.splitlines()[1 if "routerid" in new or "policy: " in new and "\n" in new else 0]
    return text, next(i for i, line in enumerate(text.splitlines(), 1) if changed in line)


@labkit.needs("peerland")
class Check(unittest.TestCase):
    def check(self, text):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="peerlan-settings-"))
        self.addCleanup(lambda: __import__("shutil").rmtree(folder))
        (folder / "members.json").write_text((labkit.ROOT / "lab" / "ixp" / "members.json").read_text())
        file = folder / "pe1.yaml"
        file.write_text(text)
        r = subprocess.run([str(labkit.BUILD / "bin" / "peerland"), "--check", str(file)],
                           capture_output=True, text=True, timeout=30, check=False)
        return file, r

    def test_right_files_are_right(self):
        for name in ("rs1", "pe1", "pe2"):
            r = subprocess.run([str(labkit.BUILD / "bin" / "peerland"), "--check",
                                str(labkit.ROOT / "lab" / "ixp" / f"{name}.yaml")],
                               capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(self.check(PE1.replace("\nbroadcast-domains:", POLICIES + "\nbroadcast-domains:"))[1].returncode, 0)

    def test_each_section(self):
        for section, (old, new) in WRONG.items():
            with self.subTest(section):
                text, line = wrong_text(old, new)
                file, r = self.check(text)
                self.assertNotEqual(r.returncode, 0)
                lines = "|".join(str(n) for n in ((line, line + 1, line + 2) if section == "syntax" else (line,)))
                self.assertRegex(r.stderr, rf"(?m)^{file}:({lines}):[1-9][0-9]*: \S", section)


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Running(labkit.LabCase):
    name = "settings"

    def test_a_running_daemon_refuses_a_wrong_file_and_goes_on(self):
        lab, good = self.lab, PE1
        pid = lab.pid("pe1")
        before = lab.show("pe1", "neighbors")[0]["established_count"]
        for section, (old, new) in WRONG.items():
            with self.subTest(section):
                text, line = wrong_text(old, new)
                (lab.folder / "ixp" / "pe1.yaml").write_text(text)  # the very file that is bound there
                r = lab.run("pe1", "peerlan", "reload", check=False)
                self.assertEqual(r.returncode, 1, r)
                self.assertRegex(r.stdout + r.stderr, r"/etc/peerlan/peerland\.yaml:\d+:\d+: ")
        (lab.folder / "ixp" / "pe1.yaml").write_text(good)
        lab.run("pe1", "peerlan", "reload")
        self.assertEqual(lab.pid("pe1"), pid)
        self.assertTrue(lab.in_service("pe1"))
        self.assertEqual(lab.show("pe1", "neighbors")[0]["established_count"], before)
        score = lab.ask(1, 4, count=50, rate=200)
        self.assertEqual((score["answered"], score["wrong"]), (50, 0))

    def test_a_daemon_does_not_start_with_a_wrong_file(self):
        lab = self.lab
        lab.run("rs1", "sh", "-c", "echo 'as: nonsense' >/run/wrong.yaml")
        r = lab.run("rs1", "peerland", "--config", "/run/wrong.yaml", check=False)
        self.assertNotEqual(r.returncode, 0)
        self.assertRegex(r.stderr, r"/run/wrong\.yaml:1:\d+: ")


if __name__ == "__main__":
    unittest.main()
