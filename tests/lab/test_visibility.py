# SPDX-License-Identifier: GPL-2.0-or-later
"""What an operator sees: every view is as docs/json.md describes it; routes with their reasons; the commands
for neighbors and what `monitor` tells of them; BMP as tshark decodes it; an MRT dump read by a reader of its
own."""
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import unittest

import labkit
from labkit import wait_for

PORT = 11019
COLLECTOR = f"""
  bmp:
    - {{ address: 10.0.0.20, port: {PORT}, tables: [in-pre, in-post, loc, out-post], reconnect: 1, statistics: 1 }}
  groups:"""
VIEWS = ("summary", "neighbors", "routes", "collectors", "macs", "bindings", "duplicates", "sponge", "offenders",
         "ports", "drops", "violations", "underlay")


def documented(view):
    """path.key of every row of the tables of docs/json.md for a view."""
    keys, paths = set(), []
    for line in (labkit.ROOT / "docs" / "json.md").read_text().splitlines():
        if line.startswith("#"):
            paths = re.findall("`([^`]+)`", line) if line.startswith("### ") else []
        elif match := re.match(r"\| `([^`]+)` \|", line):
            keys |= {f"{p}.{match[1]}" for p in paths if p == view or p.startswith(view + ".")}
    return keys


# Objects whose keys are words of the data.
FREE = {"ports.ports[].responder", "ports.ports[].drops", "ports.ports[].observed_drops"}


def emitted(value, path):
    if isinstance(value, list):
        return set().union(*(emitted(item, path + "[]") for item in value))
    if not isinstance(value, dict) or path in FREE:
        return set()
    return set().union(*({f"{path}.{k}"} | emitted(v, f"{path}.{k}") for k, v in value.items()))


def mrt_records(data):
    while data:
        _, kind, subtype, length = struct.unpack("!IHHI", data[:12])
        yield kind, subtype, data[12:12 + length]
        data = data[12 + length:]


@labkit.needs("peerland", "peerlan")
class Visibility(labkit.LabCase):
    name = "visibility"
    edit = {"ixp/rs1.yaml": lambda text: text.replace("\n  groups:", COLLECTOR, 1)}

    def peerlan(self, node, *argv):
        return self.lab.output(node, "peerlan", *argv)

    def test_documents(self):
        for view in VIEWS:
            found = set()
            for node in ("rs1", "pe1"):
                document = json.loads(self.peerlan(node, "show", view, "--json"))
                self.assertEqual(document["schema"], 1)
                found |= emitted(document, view)
            self.assertLessEqual(found, documented(view), view)
            # What this lab has nothing of, is not emitted.
            missing = documented(view) - found - {k for k in documented(view) if "drops[]." in k or ".mrt." in k or "duplicates[]." in k or "sponge[]." in k or "offenders[]." in k or
                                                  ".notifications[]." in k or ".frames[]." in k or "violations[]." in k or
                                                  ".temporary_macs[]." in k or ".rates[]." in k or
                                                  "underlay.underlay." in k}
            self.assertFalse(missing, view)

    def test_metrics_are_documented(self):
        """Of a node with a data path too: each has the type and labels of docs/metrics.md, and none of that is missing."""
        described = {}
        for line in (labkit.ROOT / "docs" / "metrics.md").read_text().splitlines():
            if line.startswith("| peerlan_"):
                names, kind, labels = line.strip("|").split("|")[:3]
                for name in re.findall("peerlan_[a-z_0-9]+", names):
                    described[name] = (kind.strip(), set(re.findall("[a-z_]+", labels)))
        seen = set()
        for node in ("rs1", "pe1"):
            for line in self.lab.output(node, "curl", "-s", "http://127.0.0.1:9477/metrics").splitlines():
                if match := re.match(r"# TYPE (peerlan_\S+) (\S+)", line):
                    self.assertEqual(described[match[1]][0], match[2], line)
                elif match := re.match(r"(peerlan_\w+)(?:\{(.*)\})? ", line):
                    seen.add(match[1])
                    self.assertEqual(described[match[1]][1], set(re.findall(r'([a-z_]+)="', match[2] or "")), line)
        # What nothing happened for in this lab.
        quiet = {n for n in described if re.search("sponge|offender|_mrt_|violations_total|next_hop_changes|notifications|port_drops|underlay", n)}
        self.assertFalse(set(described) - seen - quiet)

    def test_texts(self):
        for view in VIEWS:
            for node in ("rs1", "pe1"):
                self.assertTrue(self.peerlan(node, "show", view), view)
        detail = self.peerlan("rs1", "show", "neighbors", "pe1")
        for text in ("CAPABILITIES", "multiprotocol 25/70", "keepalive", "10.0.0.9 port 179"):
            self.assertIn(text, detail)
        found = self.peerlan("pe2", "show", "routes", "type", "2", "mac", labkit.mac(1), "why")
        self.assertIn("best: the only usable path", found)
        self.assertIn("0 of", self.peerlan("rs1", "show", "routes", "--limit", "0"))
        for arguments in (["--vni", "-1"], ["--type", "99"], ["mac", "x"], ["neighbor", "10.9.9.9"], ["vni"],
                          ["dance"]):
            r = self.lab.run("rs1", "peerlan", "show", "routes", *arguments, check=False)
            self.assertNotEqual(r.returncode, 0, arguments)
            self.assertTrue(r.stderr, arguments)

    def test_neighbor_commands(self):
        lab = self.lab
        watch = lab.start("rs1", "peerlan", "monitor", "neighbors", "--json")
        self.addCleanup(watch.kill)
        self.assertEqual(json.loads(watch.stdout.readline())["event"], "watching")

        def next_of(kind, neighbor):
            while True:
                event = json.loads(watch.stdout.readline())
                if event["event"] == kind and neighbor in event["neighbor"]:
                    return event

        def state():
            return lab.show("rs1", "neighbors", "--neighbor", "pe2")[0]["state"]

        self.peerlan("rs1", "clear", "neighbor", "pe2", "--text", "maintenance of the lab")
        event = next_of("neighbor-down", "pe2")
        self.assertIn("Administrative Reset", event["reason"])
        next_of("neighbor-up", "pe2")
        row = lab.show("pe2", "neighbors")[0]
        self.assertIn("maintenance of the lab", row["last_notification"])
        self.assertEqual(row["last_notification_direction"], "received")
        self.assertIn("maintenance of the lab".encode().hex(), row["last_notification_data"])
        before = lab.show("rs1", "neighbors", "--neighbor", "pe2")[0]["messages_out_by_type"]["route_refresh"]
        self.peerlan("rs1", "clear", "neighbor", "pe2", "--soft")
        wait_for("a route refresh", lambda: lab.show("rs1", "neighbors", "--neighbor", "pe2")[0]
                 ["messages_out_by_type"]["route_refresh"] > before)
        self.peerlan("rs1", "shutdown", "neighbor", "pe2", "--text", "back at noon")
        next_of("neighbor-down", "pe2")
        self.assertTrue(lab.show("rs1", "neighbors", "--neighbor", "pe2")[0]["shut_down"])
        self.peerlan("rs1", "enable", "neighbor", "pe2")
        next_of("neighbor-up", "pe2")
        self.assertEqual(state(), "Established")
        self.assertEqual(lab.run("rs1", "peerlan", "clear", "neighbor", "nobody", check=False).returncode, 1)
        labkit.stop(watch)
        lab.wait_converged()

    def test_mrt(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rib.mrt"
            self.peerlan("rs1", "dump", "mrt", file)
            records = list(mrt_records(file.read_bytes()))
        self.assertEqual({kind for kind, _, _ in records}, {13})
        index = records[0]
        self.assertEqual(index[1], 1)
        name = struct.unpack("!H", index[2][4:6])[0]
        peers, rest = [], index[2][8 + name:]
        for _ in range(struct.unpack("!H", index[2][6 + name:8 + name])[0]):
            kind, _, address = struct.unpack("!B4s4s", rest[:9])
            self.assertEqual(kind, 2)
            peers.append(socket.inet_ntoa(address))
            rest = rest[13:]
        paths = 0
        for _, subtype, body in records[1:]:
            self.assertEqual(subtype, 6)
            self.assertEqual(body[4:7], b"\0\x19\x46")
            body = body[7:]
            body = body[2 + body[1]:]  # the NLRI
            count, body = struct.unpack("!H", body[:2])[0], body[2:]
            for _ in range(count):
                peer, _, size = struct.unpack("!HIH", body[:8])
                self.assertLess(peer, len(peers))
                self.assertIn(b"\x80\x0e\x05\x04" + socket.inet_aton(peers[peer]), body[8:8 + size])
                body = body[8 + size:]
                paths += 1
            self.assertEqual(body, b"")
        self.assertEqual(paths, len(self.lab.show("rs1", "routes")))

    @unittest.skipIf(subprocess.run(["which", "tshark"], stdout=subprocess.DEVNULL, check=False).returncode,
                     "not installed: tshark")
    @labkit.needs("tcpdump")
    def test_bmp(self):
        """A collector that only reads; what it was told is captured and decoded."""
        lab = self.lab
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            file = os.path.join(folder, "bmp.pcap")
            capture = lab.start("monitor", "tcpdump", "-i", "core", "-U", "-s", "0", "-w", file, "tcp", "port", PORT)
            self.addCleanup(capture.kill)
            wait_for("the capture", lambda: os.path.exists(file) and os.path.getsize(file) >= 24)
            listener = lab.socket("monitor", socket.AF_INET, socket.SOCK_STREAM)
            self.addCleanup(listener.close)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("10.0.0.20", PORT))
            listener.listen()
            listener.settimeout(60)
            peer, _ = listener.accept()
            self.addCleanup(peer.close)
            peer.settimeout(60)
            stream = b""

            def kinds_told():
                at, kinds = 0, set()
                while at + 6 <= len(stream):
                    length, kind = struct.unpack("!IB", stream[at + 1:at + 6])
                    kinds.add(kind)
                    at += length
                return kinds

            # Routes, statistics, peer up, initiation; the tables come before the first statistics.
            while not {0, 1, 3, 4} <= kinds_told() or lab.show("rs1", "collectors")[0]["state"] != "up":
                stream += peer.recv(1 << 20)
            size = len(stream)
            wait_for("the capture to have what came", lambda: os.path.getsize(file) > size)
            peer.close()
            capture.terminate()
            capture.wait(timeout=20)
            fields = subprocess.run(
                ["tshark", "-r", file, "-d", f"tcp.port=={PORT},bmp", "-o", "tcp.desegment_tcp_streams:TRUE",
                 "-Y", "bmp", "-T", "fields", "-e", "bmp.type", "-e", "bmp.peer.type", "-e", "_ws.malformed"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout
            text = subprocess.run(["tshark", "-r", file, "-d", f"tcp.port=={PORT},bmp", "-Y", "bmp", "-V"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout
        kinds = set(re.findall(r"\d+", " ".join(line.split("\t")[0] for line in fields.splitlines())))
        self.assertLessEqual({"0", "1", "3", "4"}, kinds)  # routes, statistics, peer up, initiation
        # This tshark takes the name of the table behind Loc-RIB's OPENs (RFC 9069 section 4.4) for one more message.
        for one in text.split("BGP Monitoring Protocol, Type ")[1:]:
            if not (one.startswith("Peer Up") and "Loc-RIB Instance" in one):
                self.assertNotIn("Malformed", one)
        for expected in ("rs1", "EVPN NLRI: MAC Advertisement Route", labkit.mac(1), "10.0.0.1", "10.0.0.2"):
            self.assertTrue(expected in text, expected)  # not 1 MB of it


if __name__ == "__main__":
    unittest.main()
