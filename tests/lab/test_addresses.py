# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses of the peering LAN as operators and members see them: bindings, explanations, commands, traces;
reloads that nobody notices; router swaps, duplicates, sponge, silent members, address conflict detection. Once
per responder."""
import json
import socket
import sys
import time
import unittest

import labkit
from labkit import ip4, ip6, mac, wait_for

NODES = "core,rs1,pe1,pe2,m1,m2,m3,m4"
MEMBERS = range(1, 5)
NAMES = {1: "Alpha Net", 2: "Bravo Net", 3: "Charlie Net", 4: "Delta Net"}
PE_FILES = ("ixp/pe1.yaml", "ixp/pe2.yaml")


def edited(*changes):
    """Of both PEs' settings: (old, new) each."""
    def change(text):
        for old, new in changes:
            text = text.replace(old, new)
        return text
    return {path: change for path in PE_FILES}


class AddressCase(labkit.LabCase):
    only = NODES
    converge = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for pe in ("pe1", "pe2"):
            wait_for(f"{pe} in service", lambda pe=pe: cls.lab.in_service(pe), 60)

    def rows(self, pe, view, *filters):
        return self.lab.show(pe, view, *filters) or []

    def binding(self, pe, ip):
        return next(iter(self.rows(pe, "bindings", "--ip", ip)), None)

    def active(self, pe, ip, at=None):
        """Waits until the address is bound, to MAC `at` if given."""
        return wait_for(f"{ip} active on {pe}", lambda: next(
            (b for b in self.rows(pe, "bindings", "--ip", ip)
             if b["state"] == "active" and b["answered"] and at in (None, b["mac"])), None))

    def peerlan(self, pe, *argv, check=True):
        return self.lab.run(pe, "peerlan", *argv, check=check)

    def explain(self, pe, ip, *more):
        return json.loads(self.peerlan(pe, "explain", "ip", ip, "--json", *more).stdout)["explanation"]

    def ask(self, asker, ip, answer, count=3):
        """Broadcast questions of a member; how many had the right answer, and how many a wrong one."""
        score = self.lab.frames(f"m{asker}", "ask", "eth1", "--count", count, "--timeout", 500, "--rate", 50, "--target",
                                f"{ip}={answer}", check=False)
        return score["answered"], score["wrong"]

    def edit_settings(self, pe, change):
        file = self.lab.folder / "ixp" / f"{pe}.yaml"
        text = file.read_text()
        changed = change(text)
        self.assertNotEqual(text, changed)
        file.write_text(changed)
        return self.peerlan(pe, "reload").stdout

    def heard(self, node, ip):
        """The MAC that a member's kernel has for an address."""
        rows = json.loads(self.lab.output(node, "ip", "-j", "neigh", "show", "to", ip) or "[]")
        return next((r.get("lladdr") for r in rows if r.get("lladdr")), None)


class ViewTests:
    """Given bindings: the profile static."""

    def test_bindings_by_ip_mac_and_member(self):
        self.active("pe1", ip4(3))
        for word in (ip4(1), "64501", "AS64501", "alpha", mac(1)):
            with self.subTest(word):
                r = self.peerlan("pe1", "show", "bindings", word, "--json")
                found = {b["ip"] for b in json.loads(r.stdout)["bindings"]}
                self.assertIn(ip4(1), found)
                self.assertNotIn(ip4(2), found)
        mine = self.active("pe1", ip4(1))
        self.assertEqual((mine["kind"], mine["state"], mine["port"], mine["immutable"], mine["member_as"]),
                         ("static", "active", "m1", True, 64501))
        theirs = self.active("pe1", ip4(3))
        self.assertEqual((theirs["where"], theirs["vtep"], theirs["member_name"]), ("remote", "10.0.0.2", "Charlie Net"))

    def test_answers_are_counted_and_the_last_asker_named(self):
        self.active("pe1", ip6(4))
        before = self.binding("pe1", ip4(4))
        self.assertEqual(self.ask(2, ip4(4), mac(4), 5), (5, 0))
        def counted():
            b = self.binding("pe1", ip4(4))
            return b["kernel_answers"] + b["daemon_answers"] - before["kernel_answers"] - before["daemon_answers"] >= 5 and b
        after = wait_for("5 answers", counted)
        self.assertEqual(after["last_asker"], mac(2))
        self.assertEqual(after["in_kernel"], self.kernel)

    def test_explanation(self):
        self.active("pe1", ip4(3))
        about = self.explain("pe1", ip4(3), "--port", "m1")
        self.assertEqual((about["verdict"], about["answer"], about["by_kernel"]), ("answered", mac(3), self.kernel))
        self.assertIn("Charlie Net", about["database"])
        self.assertIn(mac(3), about["evpn"])
        self.assertTrue(about["rules"])
        self.assertEqual(self.explain("pe1", ip4(1), "--port", "m1")["verdict"], "same-port")
        unknown = self.explain("pe1", ip4(200))
        self.assertEqual((unknown["database"], unknown["answer"], unknown["binding"]), (None, None, None))
        self.assertIn("1. ", self.peerlan("pe1", "explain", "ip", ip4(3)).stdout)

    def test_commands_that_make_no_sense_are_refused(self):
        for argv in (("clear", "binding", ip4(200)), ("clear", "duplicate", ip4(1)), ("sponge", ip4(200), "dead"),
                     ("clear", "binding", "198.51.100.1"), ("explain", "ip", "198.51.100.1"), ("explain", "ip", ip4(1), "--port", "m9")):
            with self.subTest(argv):
                r = self.peerlan("pe1", *argv, check=False)
                self.assertEqual(r.returncode, 1, r)
                self.assertIn(next(a for a in reversed(argv) if "." in a or a == "m9"), r.stderr)
        self.assertEqual(self.peerlan("pe1", "sponge", ip4(200), "undead", check=False).returncode, 2)

    def trace(self, ip, *more):
        trace = self.lab.start("pe1", "peerlan", "trace", "ip", ip, "--file", "/run/trace.pcapng", *more)
        self.addCleanup(lambda: trace.poll() is None and labkit.stop(trace))
        return trace

    def test_trace_of_an_address(self):
        target = ip4(3)
        self.active("pe1", target)
        self.lab.quiet_members()
        trace = self.trace(target, "--seconds", "4")
        # The file may be there from before.
        wait_for("the trace", lambda: not self.binding("pe1", target)["in_kernel"] and
                 self.lab.run("pe1", "test", "-s", "/run/trace.pcapng", check=False).returncode == 0)
        self.assertEqual(self.ask(1, target, mac(3), 2), (2, 0))
        self.lab.frames("m1", "send", "gratuitous-arp", "eth1", "--ip", target, "--count", 1)
        out, err = trace.communicate(timeout=30)
        self.assertEqual(trace.returncode, 0, err)
        self.assertIn("the daemon answers for it and not the kernel", err)
        wait_for("the kernel to answer again", lambda: self.binding("pe1", target)["in_kernel"] == self.kernel)
        lines = self.lab.output("pe1", "tshark", "-r", "/run/trace.pcapng", "-T", "fields", "-E", "separator=|", "-e",
                                "frame.interface_name", "-e", "frame.packet_flags_direction", "-e", "arp.opcode", "-e",
                                "frame.comment").splitlines()
        seen = [line.split("|") for line in lines]
        questions = [s for s in seen if s[0] == "m1" and s[2] == "1" and s[3].startswith("answered")]
        replies = [s for s in seen if s[0] == "m1" and s[2] == "2" and s[3] == "sent by the daemon"]
        self.assertEqual((len(questions), len(replies)), (2, 2), seen)
        self.assertTrue([s for s in seen if s[3].startswith("not-owner")], seen)
        info = self.lab.output("pe1", "capinfos", "/run/trace.pcapng")
        self.assertIn("Name = m1", info)

    def test_a_trace_ends_with_its_reader_and_needs_a_right_address(self):
        self.active("pe1", ip4(3))
        trace = self.trace(ip4(3))
        wait_for("the trace", lambda: not self.binding("pe1", ip4(3))["in_kernel"] and
                 self.lab.run("pe1", "test", "-s", "/run/trace.pcapng", check=False).returncode == 0)
        labkit.stop(trace)
        wait_for("the kernel to answer again", lambda: self.binding("pe1", ip4(3))["in_kernel"] == self.kernel)
        r = self.peerlan("pe1", "trace", "ip", "198.51.100.1", "--file", "/run/no", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertIn("outside of the prefixes", r.stderr)

    def test_36_a_client_that_never_reads_disturbs_nobody(self):
        self.active("pe1", ip4(3))
        path = f"/proc/{self.lab.state.nodes['pe1']['init']['pid']}/root/run/peerlan/peerland.sock"
        clients = []
        for request in ({"command": "trace", "arguments": {"ip": ip4(3), "seconds": 20}},
                        {"command": "show", "what": "bindings", "arguments": {}},
                        {"command": "show", "what": "ports", "arguments": {}}):
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
            client.sendall(json.dumps(request).encode() + b"\n")
            clients.append(client)
        try:
            self.assertEqual(self.ask(1, ip4(3), mac(3), 10), (10, 0))
            self.assertEqual(self.ask(1, ip4(4), mac(4), 50), (50, 0))
            self.assertTrue(self.lab.show("pe1", "summary"))
        finally:
            for client in clients:
                client.close()
        wait_for("the trace to end", lambda: self.binding("pe1", ip4(3))["in_kernel"] == self.kernel)

    def test_knobs_are_reloaded_and_nobody_notices(self):
        for pe in ("pe1", "pe2"):
            self.active(pe, ip4(3))
        before = {p["port"]: (p["state"], p.get("flaps")) for p in self.rows("pe1", "ports")}
        sessions = self.lab.show("pe1", "neighbors")[0]["established_count"]
        pid = self.lab.pid("pe1")
        with self.lab.probing([1], targets=[2, 3, 4]) as results:
            for knobs in ("flood-unknown: core", "unknown-options: forward", "unassigned: [{prefix: 192.0.2.128/25, policy: sponge}]",
                          "duplicate-ip: {moves: 3}", "probes: pass", "age-time: 1h"):
                self.edit_settings("pe1", lambda text, knobs=knobs: text.replace("    policy: peering\n",
                                                                                 f"    policy: peering\n    {knobs}\n"))
                self.edit_settings("pe1", lambda text, knobs=knobs: text.replace(f"    {knobs}\n", ""))
        self.assertEqual(labkit.lost(results), {})
        self.assertEqual({p["port"]: (p["state"], p.get("flaps")) for p in self.rows("pe1", "ports")}, before)
        self.assertEqual(self.lab.show("pe1", "neighbors")[0]["established_count"], sessions)
        self.assertEqual(self.lab.pid("pe1"), pid)

    def test_B17_probes_of_strangers_are_answered(self):
        """Address conflict detection as the members' own programs and kernels do it."""
        self.active("pe1", ip4(3))
        r = self.lab.run("m1", "arping", "-0", "-c", 3, "-C", 1, "-w", 5, "-i", "eth1", ip4(3), check=False)
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertIn(mac(3), r.stdout)
        r = self.lab.run("m1", "arping", "-0", "-c", 1, "-w", 1, "-i", "eth1", ip4(1), check=False)
        self.assertNotEqual(r.returncode, 0, "the owner was told that its own address is in use")

    def test_B7_duplicate_address_detection_of_the_kernel(self):
        self.active("pe1", ip6(3))
        for optimistic in (0, 1):
            with self.subTest(optimistic=optimistic):
                self.lab.run("m1", "sysctl", "-qw", f"net.ipv6.conf.eth1.optimistic_dad={optimistic}")
                self.lab.run("m1", "ip", "addr", "add", f"{ip6(3)}/64", "dev", "eth1")
                try:
                    wait_for("the address to fail", lambda: "dadfailed" in self.lab.output(
                        "m1", "ip", "-6", "addr", "show", "dev", "eth1", "to", ip6(3)), 10)
                finally:
                    self.lab.run("m1", "ip", "addr", "del", f"{ip6(3)}/64", "dev", "eth1")
        self.assertEqual(self.ask(2, ip6(3), mac(3)), (3, 0))
        # A free one is nobody's, and the member's own comes up again.
        self.lab.run("m1", "sysctl", "-qw", "net.ipv6.conf.eth1.optimistic_dad=0")
        self.lab.run("m1", "ip", "addr", "del", f"{ip6(1)}/64", "dev", "eth1")
        self.lab.run("m1", "ip", "addr", "add", f"{ip6(1)}/64", "dev", "eth1")
        def settled():
            text = self.lab.output("m1", "ip", "-6", "addr", "show", "dev", "eth1", "to", ip6(1))
            return "tentative" not in text and text
        self.assertNotIn("dadfailed", wait_for("the address to settle", settled, 10))

    def test_H2_H6_unknown_destinations_and_sources_go_nowhere(self):
        with self.lab.counting((2, 3, 4)) as counts:
            self.lab.frames("m1", "send", "unknown-unicast", "eth1", "--count", 20, "--rate", 50)
            self.lab.frames("m1", "send", "arp", "eth1", "--mac", "02:00:00:00:0f:01", "--count", 20, "--rate", 50)
            wait_for("both to be counted", lambda: self.counted <= self.lab.drops("pe1", "m1").keys())
        for name, document in counts.items():
            self.assertFalse(labkit.of_classes(document, ("unknown-unicast", "arp-request")), name)


@labkit.needs("peerland", "peerlan", "peerlan-frames", "tshark", "arping")
class ViewsEbpf(ViewTests, AddressCase):
    name = "views"
    kernel = True
    counted = {"unknown-unicast", "source-mac"}


@labkit.needs("peerland", "peerlan", "peerlan-frames", "tshark", "arping")
class ViewsPcap(ViewTests, AddressCase):
    name = "viewsp"
    kernel = False
    counted = {"source-mac"}  # the bridge drops unknown unicast by itself
    edit = edited(("responder: ebpf", "responder: pcap"))


class SwapTests:
    """Two MACs are allowed for Alpha Net's router; the export of the lab knows one."""

    def test_H8_a_router_swap_needs_nobody(self):
        # Of several MACs the one that is seen is used: the member says something.
        self.lab.run("m1", "ping", "-c", 1, "-W", 1, ip4(3), check=False)
        self.active("pe1", ip4(1), mac(1))
        new = "02:00:00:00:01:01"
        for swapped in (new, mac(1)):
            with self.subTest(swapped):
                self.lab.run("m1", "ip", "link", "set", "eth1", "down")
                self.lab.run("m1", "ip", "link", "set", "eth1", "address", swapped)
                began = time.monotonic()
                self.lab.run("m1", "ip", "link", "set", "eth1", "up")
                self.lab.run("m1", "ip", "addr", "replace", f"{ip6(1)}/64", "dev", "eth1", "nodad")
                # What a router does first: it asks for its neighbors.
                self.lab.run("m1", "ping", "-c", 1, "-W", 1, ip4(3), check=False)
                for pe in ("pe1", "pe2"):
                    self.active(pe, ip4(1), swapped)
                print(f"    {swapped} in use on both PEs {time.monotonic() - began:.1f} s after its link came up", file=sys.stderr)
                self.assertEqual(self.ask(3, ip4(1), swapped), (3, 0))
        self.assertEqual(self.lab.run("m1", "ping", "-c", 2, "-W", 2, ip4(3), check=False).returncode, 0)


# There and back in a few seconds would be a flapping link.
TWO_MACS = edited(("macs: [02:00:00:00:00:01]\n", "macs: [02:00:00:00:00:01, 02:00:00:00:01:01]\n"
                   "        security: { flap-transitions: 0 }\n"),
                  ("    members:\n      - ixf: members.json\n        vlan-id: 1\n", ""))


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class SwapEbpf(SwapTests, AddressCase):
    name = "swap"
    edit = TWO_MACS


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class SwapPcap(SwapTests, AddressCase):
    name = "swapp"
    edit = {path: lambda text, f=f: f(text).replace("responder: ebpf", "responder: pcap") for path, f in TWO_MACS.items()}


# --- learned bindings, with short timers
AGE, REFRESH, HOLD = 6, 2, 8
SPOOF = "02:aa:aa:aa:aa:aa"
LEARN = f"""    profile: hybrid
    age-time: {AGE}s
    refresh: {REFRESH}s
    new-bindings-per-second: 100
    duplicate-ip: {{ moves: 3, window: 30s, hold: {HOLD}s, confirm: 1s, anti-spoof-mac: "{SPOOF}" }}
    unassigned:
      - {{ prefix: 192.0.2.128/25, policy: sponge }}
    sponge: {{ queue: 10, rate: 30, pending: 2, age: 60s, learning: 0, flood-protection: 0 }}
    decoys: {{ addresses: [192.0.2.127], interval: 2s }}
"""


def learned(text):
    """Members 2 and 3 have no bindings of their own: theirs are learned. 1 and 4 are the route servers, say."""
    for n in (2, 3):
        text = text.replace(f"        macs: [{mac(n)}]\n        addresses: [{ip4(n)}, {ip6(n)}]\n", "")
    text = text.replace("    members:\n      - ixf: members.json\n        vlan-id: 1\n", "")
    return text.replace("    profile: static\n", LEARN)


class LearnTests:
    def speak(self, n, ip=None):
        """The member says that it is there."""
        self.lab.frames(f"m{n}", "send", "gratuitous-arp", "eth1", "--count", 1, *(["--ip", ip] if ip else []))

    def claim(self, nodes, ip):
        for n in nodes:
            self.lab.run(f"m{n}", "ip", "addr", "add", f"{ip}/32", "dev", "eth1")
            self.addCleanup(self.lab.run, f"m{n}", "ip", "addr", "del", f"{ip}/32", "dev", "eth1", check=False)

    def test_D3_D6_a_silent_member_that_lives_stays(self):
        self.speak(2)
        self.active("pe1", ip4(2))
        before = self.advertised("pe2", ip4(2))
        until = time.monotonic() + 3 * AGE
        while time.monotonic() < until:
            row = self.binding("pe1", ip4(2))
            self.assertTrue(row and row["state"] == "active", row)
            time.sleep(0.5)
        self.assertEqual(self.advertised("pe2", ip4(2)), before)

    def advertised(self, pe, ip):
        return [(r["mac"], r["communities"]) for r in self.rows(pe, "routes", "--ip", ip, "--best")]

    def test_D7_a_member_that_is_gone_goes(self):
        self.speak(2)
        self.active("pe1", ip4(2))
        wait_for("its route at pe2", lambda: self.advertised("pe2", ip4(2)))
        self.lab.run("m2", "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=8", "net.ipv6.conf.eth1.disable_ipv6=1")
        try:
            wait_for("the binding to age", lambda: self.binding("pe1", ip4(2)) is None, 4 * AGE)
            wait_for("its route to go", lambda: not self.advertised("pe2", ip4(2)))
        finally:
            self.lab.run("m2", "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=0", "net.ipv6.conf.eth1.disable_ipv6=0")
            self.lab.run("m2", "ip", "addr", "replace", f"{ip6(2)}/64", "dev", "eth1", "nodad")

    def test_clear_binding(self):
        self.speak(2)
        self.active("pe1", ip4(2))
        self.peerlan("pe1", "clear", "binding", ip4(2))
        self.assertIsNone(self.binding("pe1", ip4(2)))
        self.speak(2)
        self.active("pe1", ip4(2))

    def test_probe(self):
        self.speak(2)
        age = lambda: (self.binding("pe1", ip4(2)) or {"age_seconds": 99})["age_seconds"]
        self.active("pe1", ip4(2))
        self.assertIn("asked", self.peerlan("pe1", "probe", ip4(2)).stdout)
        wait_for("an answer", lambda: age() == 0)

    def test_H3_nobody_takes_the_route_servers_address(self):
        self.active("pe1", ip4(1), mac(1))
        self.lab.frames("m2", "send", "gratuitous-arp", "eth1", "--ip", ip4(1), "--count", 5)
        self.lab.frames("m3", "send", "gratuitous-reply", "eth1", "--ip", ip4(1), "--count", 5)
        wait_for("an alarm", lambda: "claims 192.0.2.1" in self.lab.log("pe1"))
        for asker in (2, 3):
            self.assertEqual(self.ask(asker, ip4(1), mac(1)), (3, 0))
        self.assertEqual(self.rows("pe1", "duplicates", "--ip", ip4(1)), [])

    def duplicate(self, first, second, ip):
        """Two members really have the address: both defend it. With two PEs the first to find out tells the other."""
        self.claim((first, second), ip)
        def frozen():
            for n in (first, second):
                self.speak(n, ip)
            for pe in sorted({labkit.pe_of(first), labkit.pe_of(second)}):
                for d in self.rows(pe, "duplicates", "--ip", ip):
                    if d["frozen"]:
                        return pe, d
            return None
        return wait_for(f"{ip} to be found a duplicate", frozen, 40)

    def test_F4_F6_F7_F8_two_claimants_of_one_pe(self):
        ip = ip4(77)
        # Both ports of pe1 must be free to claim: 1 is given, so it claims a second address.
        pe, row = self.duplicate(1, 2, ip)
        self.assertEqual({row["first_mac"], row["second_mac"]}, {mac(1), mac(2)})
        self.assertEqual({row["first_port"], row["second_port"]}, {"m1", "m2"})
        line = next(l for l in reversed(self.lab.log(pe).splitlines()) if f"duplicate address {ip}" in l and "moves" in l)
        for text in (mac(1), mac(2), "m1", "m2", NAMES[1], NAMES[2]):
            self.assertIn(text, line)
        self.assertTrue(row["anti_spoof"])
        wait_for("members to be told the anti-spoof MAC", lambda: self.ask(3, ip, SPOOF, 1) == (1, 0))
        about = self.explain(pe, ip)
        self.assertIn("duplicate", about["verdict"] + " ".join(about["rules"]))
        self.lab.run("m3", "ip", "neigh", "replace", ip, "lladdr", SPOOF, "dev", "eth1", "nud", "reachable")
        self.lab.run("m3", "ping", "-c", 3, "-i", 0.2, "-W", 1, ip, check=False)
        wait_for("frames to the anti-spoof MAC to be counted", lambda: sum(self.lab.drops("pe2", "m3").get(r, 0) for r in ("anti-spoof", "trapped")) >= 3)
        self.assertIn("no longer frozen", self.peerlan(pe, "clear", "duplicate", ip).stdout)
        self.assertFalse([d for d in self.rows(pe, "duplicates", "--ip", ip) if d["frozen"]])

    def test_F11_two_claimants_at_two_pes(self):
        ip = ip4(78)
        pe, row = self.duplicate(2, 3, ip)
        self.assertEqual({row["first_mac"], row["second_mac"]}, {mac(2), mac(3)})
        self.assertIn("10.0.0.2" if pe == "pe1" else "10.0.0.1", (row["first_vtep"], row["second_vtep"]))
        # The hold-down ends by itself once they have settled it.
        for n in (2, 3):
            self.lab.run(f"m{n}", "ip", "addr", "del", f"{ip}/32", "dev", "eth1")
        wait_for("the end of the hold-down", lambda: not [d for d in self.rows(pe, "duplicates", "--ip", ip) if d["frozen"]], 4 * HOLD)

    def test_sponge_from_dead_to_alive(self):
        ip = ip4(200)
        def asked():
            self.lab.frames("m1", "sweep", "eth1", "--first", ip, "--count", 1, "--rate", 100)
            return next((s for s in self.rows("pe1", "sponge", "--ip", ip) if s["state"] == "dead"), None)
        wait_for("the address to be dead", asked, 40)
        self.assertIn(f"address {ip} is dead", self.lab.log("pe1"))
        row = self.rows("pe1", "sponge", "--ip", ip)[0]
        self.assertEqual(row["last_asker"], mac(1))
        # No question more goes to others; that for the decoy does.
        with self.lab.counting((2, 3, 4)) as counts:
            self.lab.frames("m1", "sweep", "eth1", "--first", ip, "--count", 1, "--rate", 20, "--seconds", 1)
        for name, document in counts.items():
            self.assertLess(document["frames"].get("arp-request", 0), 10, name)
        wait_for("answers to be counted", lambda: self.rows("pe1", "sponge", "--ip", ip)[0]["answers"] >= 10)
        self.assertTrue([o for o in self.rows("pe1", "offenders") if o["kind"] == "target" and o["ip"] == ip])
        # A member comes with it.
        self.lab.run("m2", "ip", "addr", "add", f"{ip}/32", "dev", "eth1")
        self.addCleanup(self.lab.run, "m2", "ip", "addr", "del", f"{ip}/32", "dev", "eth1", check=False)
        self.speak(2, ip)
        self.active("pe1", ip, mac(2))
        self.assertEqual(self.ask(1, ip, mac(2)), (3, 0))
        self.assertFalse([s for s in self.rows("pe1", "sponge", "--ip", ip) if s["state"] == "dead"])
        self.assertIn(f"address {ip} is back", self.lab.log("pe1"))

    def test_sponge_by_hand(self):
        ip = ip4(201)
        for state in ("dead", "alive"):
            self.peerlan("pe1", "sponge", ip, state)
            self.assertEqual([s["state"] for s in self.rows("pe1", "sponge", "--ip", ip)] or ["alive"], [state])

    def test_a_router_with_proxy_arp_is_named(self):
        self.lab.run("m2", "ip", "addr", "add", "192.0.2.127/32", "dev", "eth1")
        try:
            row = wait_for("the offender", lambda: next((o for o in self.rows("pe1", "offenders") if o["kind"] == "proxy-arp" and o["ip"] == "192.0.2.127"), None))
        finally:
            self.lab.run("m2", "ip", "addr", "del", "192.0.2.127/32", "dev", "eth1")
        self.assertEqual((row["port"], row["mac"], row["ip"], row["member_name"]), ("m2", mac(2), "192.0.2.127", NAMES[2]))
        self.assertIsNone(self.binding("pe1", "192.0.2.127"))


LEARNED = {path: learned for path in PE_FILES}


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class LearnEbpf(LearnTests, AddressCase):
    name = "learn"
    edit = LEARNED


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class LearnPcap(LearnTests, AddressCase):
    name = "learnp"
    edit = {path: lambda text: learned(text).replace("responder: ebpf", "responder: pcap") for path in PE_FILES}


def no_export(text):
    return text.replace("    members:\n      - ixf: members.json\n        vlan-id: 1\n", "")


@labkit.needs("peerland", "peerlan", "peerlan-frames", "vtysh")
class Frr(AddressCase):
    """FRRouting as the other PE: bindings both ways, with its flags. It sends the router flag alone, and for a
    host no community at all."""
    name = "addrfrr"
    only = None
    converge = True
    edit = {path: no_export for path in PE_FILES}

    def neighbor(self, *more):
        self.lab.run("pe3", "ip", "neigh", "replace", ip6(5), "lladdr", mac(5), "dev", "br100", "nud", "permanent", *more)

    def communities(self, ip):
        return " ".join(c for r in self.rows("pe1", "routes", "--ip", ip, "--best") for c in r["communities"])

    def test_27_its_router_flag_does_not_cost_the_override_flag(self):
        self.neighbor("router")
        self.addCleanup(self.neighbor)
        row = self.active("pe1", ip6(5), mac(5))
        self.assertEqual(row["kind"], "evpn")
        wait_for("its community", lambda: "ND:R" in self.communities(ip6(5)))
        self.assertEqual(self.ask(1, ip6(5), mac(5)), (3, 0))  # R, S and O set

    def test_G9_without_a_community_the_default_holds(self):
        self.active("pe1", ip6(6), mac(6))
        self.assertEqual(self.ask(1, ip6(6), mac(6)), (3, 0))
        self.active("pe1", ip4(6), mac(6))
        self.assertEqual(self.ask(1, ip4(6), mac(6)), (3, 0))

    def test_it_takes_our_bindings_with_their_router_flag(self):
        for ip in (ip4(1), ip6(1)):
            wait_for(f"{ip} in its kernel", lambda ip=ip: mac(1) in self.lab.output(
                "pe3", "ip", "neigh", "show", "to", ip, "dev", "br100"))
        self.assertIn("router", self.lab.output("pe3", "ip", "-6", "neigh", "show", "to", ip6(1), "dev", "br100"))

    def test_a_binding_that_it_withdraws_goes(self):
        self.active("pe1", ip4(6), mac(6))
        self.lab.run("pe3", "ip", "neigh", "del", ip4(6), "dev", "br100")
        try:
            wait_for("the binding to go", lambda: self.binding("pe1", ip4(6)) is None)
        finally:
            self.lab.run("pe3", "ip", "neigh", "replace", ip4(6), "lladdr", mac(6), "dev", "br100", "nud", "permanent")
        self.active("pe1", ip4(6), mac(6))


if __name__ == "__main__":
    unittest.main()
