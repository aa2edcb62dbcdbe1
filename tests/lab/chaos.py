#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Chaos: kills, stops, link flaps, session resets, kernel meddling and reloads in the exchange of lab/ixp.clab.yml, in
an order that a seed gives; then all is left alone, and every PE's tables, bindings and routes must be the model's.

    chaos.py [--seconds 600] [--seed N] [--list]

The model is what the settings say: each member's MAC and addresses at its port or PE, the flood list of the other PEs,
their routes at the reflector; it is compared before the first event, too. --list shows the events and does nothing.
test_chaos.py runs a minute of it. The last line is `chaos: N events, N differences, seed N`; exit 1 when there are any."""
import argparse
import contextlib
import os
import pathlib
import random
import signal
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[n] / "lab") for n in (1, 2)]
import labkit  # noqa: E402
from labkit import ip4, ip6, mac, pe_of  # noqa: E402

PES = ("pe1", "pe2")  # those with peerland; pe3 is FRRouting
NODES = (*PES, "rs1")
VTEPS = {"pe1": "10.0.0.1", "pe2": "10.0.0.2", "pe3": "10.0.0.3"}
PORTS = {"pe1": ("m1", "m2"), "pe2": ("m3", "m4")}
STRAY = "02:00:00:00:ff:ff"
SETTLE = 90  # s that the tables may take to be right when all is left alone


def members_of(pe):
    return [n for n in labkit.MEMBERS if pe_of(n) == pe]


# --- the model: sets of lines, each of which is there or not


def model_fdb(pe):
    lines = set()
    for n in labkit.MEMBERS:
        if pe_of(n) == pe:
            lines.add(f"{mac(n)} m{n} master sticky")
        else:
            lines |= {f"{mac(n)} vx100 master extern_learn", f"{mac(n)} vx100 to {VTEPS[pe_of(n)]}"}
    return lines | {f"00:00:00:00:00:00 vx100 to {v}" for other, v in VTEPS.items() if other != pe}


def model_bindings(pe):
    return {f"{address} {mac(n)} {f'm{n}' if pe_of(n) == pe else 'elsewhere'}"
            for n in labkit.MEMBERS for address in (ip4(n), ip6(n))}


def model_macs(pe):
    return {f"{mac(n)} {f'm{n}' if pe_of(n) == pe else VTEPS[pe_of(n)]}" for n in labkit.MEMBERS}


def model_routes():
    """At the reflector; MAC/IP routes and flood endpoints with their next hops."""
    routes = set()
    for pe, vtep in VTEPS.items():
        routes.add(f"[3] {vtep}")
        for n in members_of(pe):
            routes |= {f"{mac(n)} {address} {vtep}" for address in ("", ip4(n), ip6(n))}
    return routes


# --- what is there


def seen_fdb(lab, pe):
    lines = set()
    for line in lab.output(pe, "bridge", "fdb", "show", "br", "br100").splitlines():
        words = line.split()
        address, device = words[0], words[2]
        if address[:5] in ("33:33", "01:00") or ("permanent" in words and "dst" not in words):
            continue
        if "dst" in words:
            lines.add(f"{address} {device} to {words[words.index('dst') + 1]}")
        elif "master" in words:
            kind = next((k for k in ("extern_learn", "sticky") if k in words), "learned")
            lines.add(f"{address} {device} master {kind}")
    return lines


def seen_bindings(lab, pe):
    return {f"{b['ip']} {b['mac']} {b['port'] or 'elsewhere'}" for b in lab.show(pe, "bindings") or []
            if b["ip"] and not b["ip"].startswith("fe80:")}


def seen_macs(lab, pe):
    return {f"{m['mac']} {m['port'] or m['vtep']}" for m in lab.show(pe, "macs") or [] if not m["duplicate"]}


def seen_routes(lab):
    routes = set()
    for r in lab.show("rs1", "routes", "--best") or []:
        if r["stale"]:
            continue
        if r["type"] == 3:
            routes.add(f"[3] {r['next_hop']}")
        elif r["type"] == 2 and not (r["ip"] or "").startswith("fe80:") and r["mac"].startswith("02:00:00:00:00:0"):
            routes.add(f"{r['mac']} {r['ip'] or ''} {r['next_hop']}")
    return routes


def differences(lab):
    out = []

    def compare(what, model, seen):
        out.extend([f"{what}: missing: {line}" for line in sorted(model - seen)]
                   + [f"{what}: too much: {line}" for line in sorted(seen - model)])
    for pe in PES:
        if lab.pid(pe) is None:
            out.append(f"{pe}: no daemon")
            continue
        compare(f"{pe} fdb", model_fdb(pe), seen_fdb(lab, pe))
        compare(f"{pe} macs", model_macs(pe), seen_macs(lab, pe))
        compare(f"{pe} bindings", model_bindings(pe), seen_bindings(lab, pe))
        for port in lab.show(pe, "ports") or []:
            if port["state"] not in ("up", "core"):
                out.append(f"{pe} port {port['port']}: {port['state']}")
    compare("rs1 routes", model_routes(), seen_routes(lab))
    return out


def wait_for_the_model(lab, timeout=SETTLE):
    """The differences that are left."""
    deadline = time.monotonic() + timeout
    while True:
        left = differences(lab)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.5)


# --- events: (name, arguments); all that is random is in the plan


MEDDLINGS = ("delete-tunnel-entry", "delete-bridge-entry", "change-tunnel-entry", "stray-entry", "delete-flood-entry",
             "stray-flood-entry", "flush-bridge", "port-leaves", "detach-programs", "delete-vxlan", "vxlan-down",
             "port-flags")
RELOADS = ("policy", "duplicate-mac", "mtu", "targets", "member", "rollback", "same")


def plan(seed, seconds):
    """[(pause in s before it, name, arguments)] that takes about so many seconds."""
    dice = random.Random(seed)
    events, at = [], 0.0
    while at < seconds:
        pause = round(dice.uniform(0.1, 1.5), 2)
        kind = dice.choices(("kill", "stop", "hang", "core-flap", "port-flap", "reset", "meddle", "reload"),
                            (3, 2, 1, 2, 3, 2, 8, 4))[0]
        away = round(dice.uniform(0.1, 2.5), 2)
        if kind in ("kill", "stop", "hang"):
            arguments = (dice.choice(NODES), away)
        elif kind == "core-flap":
            arguments = (dice.choice(tuple(VTEPS)), away)
        elif kind == "port-flap":
            pe = dice.choice(PES)
            arguments = (pe, dice.choice(PORTS[pe]), away)
        elif kind == "reset":
            arguments = (dice.choice(NODES), dice.choice((True, False)))
            away = 0
        elif kind == "meddle":
            pe = dice.choice(PES)
            others = [n for n in labkit.MEMBERS if pe_of(n) != pe]
            arguments = (pe, dice.choice(MEDDLINGS), dice.choice(others), dice.choice(PORTS[pe]))
            away = 0.1
        else:
            arguments = (dice.choice(PES), dice.choice(RELOADS), dice.randrange(1, 1000))
            away = 0.2
        events.append((pause, kind, arguments))
        at += pause + away
    return events


class Chaos:
    def __init__(self, lab):
        self.lab = lab
        self.files = {pe: lab.folder / "ixp" / f"{pe}.yaml" for pe in PES}
        self.texts = {pe: file.read_text() for pe, file in self.files.items()}

    def quietly(self, node, *argv):
        """Of a command that may fail, as what it is about may be gone."""
        return self.lab.run(node, *argv, check=False)

    def start(self, node):
        if self.lab.pid(node) is None:
            self.quietly(node, "peerlan-node", "start", "peerland")

    def away(self, node, number, seconds):
        pid = self.lab.pid(node)
        if pid is None:
            return self.start(node)
        self.quietly(node, "kill", f"-{int(number)}", pid)
        time.sleep(seconds)
        if number == signal.SIGSTOP:
            self.quietly(node, "kill", f"-{int(signal.SIGCONT)}", pid)
        else:
            with contextlib.suppress(AssertionError):
                labkit.wait_for("it to end", lambda: self.lab.pid(node) is None, 20)
            self.start(node)
        return None

    def kill(self, node, seconds):
        self.away(node, signal.SIGKILL, seconds)

    def stop(self, node, seconds):
        self.away(node, signal.SIGTERM, seconds)

    def hang(self, node, seconds):
        self.away(node, signal.SIGSTOP, seconds)

    def core_flap(self, pe, seconds):
        self.quietly("core", "ip", "link", "set", pe, "down")
        time.sleep(seconds)
        self.quietly("core", "ip", "link", "set", pe, "up")
        self.core_routes(pe)

    def core_routes(self, pe):
        n = pe[2:]
        self.quietly("core", "ip", "route", "replace", f"10.0.0.{n}/32", "via", f"10.1.{n}.1")

    def port_flap(self, pe, port, seconds):
        self.quietly(pe, "ip", "link", "set", port, "down")
        time.sleep(seconds)
        self.quietly(pe, "ip", "link", "set", port, "up")

    def reset(self, node, soft):
        for neighbor in self.lab.show(node, "neighbors") or []:
            if neighbor["state"] == "Established":
                self.quietly(node, "peerlan", "clear", "neighbor", neighbor["address"], *(["--soft"] if soft else []))
                return

    def meddle(self, pe, what, other, port):
        vtep = VTEPS[pe_of(other)]
        bridge = ["bridge", "fdb"]
        commands = {
            "delete-tunnel-entry": [*bridge, "del", mac(other), "dev", "vx100", "dst", vtep, "self"],
            "delete-bridge-entry": [*bridge, "del", mac(other), "dev", "vx100", "master"],
            "change-tunnel-entry": [*bridge, "replace", mac(other), "dev", "vx100", "dst", "10.9.9.9", "self", "extern_learn"],
            "stray-entry": [*bridge, "add", STRAY, "dev", "vx100", "dst", "10.9.9.9", "self", "extern_learn"],
            "delete-flood-entry": [*bridge, "del", "00:00:00:00:00:00", "dev", "vx100", "dst", vtep],
            "stray-flood-entry": [*bridge, "append", "00:00:00:00:00:00", "dev", "vx100", "dst", "10.9.9.9"],
            "flush-bridge": ["ip", "link", "set", "br100", "type", "bridge", "fdb_flush"],
            "port-leaves": ["ip", "link", "set", port, "nomaster"],
            "delete-vxlan": ["ip", "link", "del", "vx100"],
            "vxlan-down": ["ip", "link", "set", "vx100", "down"],
            "port-flags": ["bridge", "link", "set", "dev", port, "learning", "off", "flood", "on"],
        }
        if what == "detach-programs":
            pins = self.quietly(pe, "find", "/sys/fs/bpf", "-path", "*/links/*").stdout.split()
            if pins:
                self.quietly(pe, "rm", "-f", *pins)
        else:
            self.quietly(pe, *commands[what])

    def reload(self, pe, what, number):
        text = self.texts[pe]
        domain = {"duplicate-mac": f"    duplicate-mac: {{ moves: {number} }}\n",
                  "mtu": f"    ageing: {number + 600}s\n",
                  "targets": f"    export-targets: [65000:100, 65000:{number}]\n"}.get(what)
        if domain:
            text = text.replace("    policy: peering\n", domain + "    policy: peering\n")
        if what == "policy":
            text = text.replace("\nbroadcast-domains:",
                                f"\npolicies:\n  peering:\n    ingress: {{ arp: {{ pps: {number} }} }}\n\nbroadcast-domains:")
        if what in ("member", "rollback"):  # the second port goes
            text = text[:text.index(f"      - interface: {PORTS[pe][1]}\n")]
        self.files[pe].write_text(text)
        self.quietly(pe, "peerlan", "reload", "--force", *(["--confirm", "1"] if what == "rollback" else []))
        if what == "member":
            self.files[pe].write_text(self.texts[pe])
            self.quietly(pe, "peerlan", "reload")

    def calm(self):
        """All that an event may have left behind."""
        for node in NODES:
            pid = self.lab.pid(node)
            if pid:
                self.quietly(node, "kill", f"-{int(signal.SIGCONT)}", pid)
        for pe in VTEPS:
            self.quietly("core", "ip", "link", "set", pe, "up")
            self.core_routes(pe)
        for pe in PES:
            for port in PORTS[pe]:
                self.quietly(pe, "ip", "link", "set", port, "up")
            self.files[pe].write_text(self.texts[pe])
        for node in NODES:
            self.start(node)
        for pe in PES:
            labkit.wait_for(f"the daemon of {pe}", lambda pe=pe: self.lab.show(pe, "summary"))
            self.quietly(pe, "peerlan", "rollback")
            self.lab.run(pe, "peerlan", "reload", "--force")

    def run(self, events, say):
        for pause, kind, arguments in events:
            time.sleep(pause)
            say(kind, *arguments)
            getattr(self, kind.replace("-", "_"))(*arguments)
        self.calm()
        return wait_for_the_model(self.lab)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    events = plan(options.seed, options.seconds)
    if options.list:
        for event in events:
            print(*event)
        return 0
    lab = labkit.Lab("chaos")
    lab.up()
    try:
        lab.wait_converged()
        left = wait_for_the_model(lab)
        if left:
            print("not even before the first event:", *left, sep="\n  ")
            return 1
        began = time.monotonic()
        left = Chaos(lab).run(events, lambda *words: print(f"{time.monotonic() - began:7.1f}", *words, flush=True))
        for line in left:
            print(line)
        if left:
            for node in NODES:
                print(f"--- {node}\n{lab.log(node)[-4000:]}")
        print(f"chaos: {len(events)} events, {len(left)} differences, seed {options.seed}")
        return 1 if left else 0
    finally:
        lab.down()


if __name__ == "__main__":
    sys.exit(main())
