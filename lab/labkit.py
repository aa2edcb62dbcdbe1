# SPDX-License-Identifier: GPL-2.0-or-later
"""For what drives a lab from Python, the lab tests and the demonstration: a lab of one's own, waiting for
a condition, the daemon's JSON, counting and probing."""
import atexit
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("PEERLAN_BUILD", ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "lab"))
import netlab  # noqa: E402

MEMBERS = range(1, 7)
ARP_ND = ("arp-request", "arp-reply", "gratuitous-arp", "ns", "na", "unsolicited-na")


def ip4(n):
    return f"192.0.2.{n}"


def ip6(n):
    return f"2001:db8:1::{n}"


def mac(n):
    return f"02:00:00:00:00:0{n}"


def pe_of(n):
    return f"pe{(n + 1) // 2}"


def wait_for(what, condition, timeout=30):
    """The condition's value as soon as it is true; fails with `what` and the last value otherwise."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what} (last: {value!r})")
        time.sleep(0.1)


def needs(*programs):
    """Skips a test case where these programs of ours aren't built or of others aren't installed."""
    missing = [p for p in programs if not (BUILD / "bin" / p).exists() and not shutil.which(p)]
    return unittest.skipIf(missing, f"not built or installed: {', '.join(missing)}")


class Lab:
    """A topology of lab/. By default a copy of it, with `edit` (file below lab/ -> function of its text)
    applied, under a name of its own; `shared`: the files themselves under the very name."""

    def __init__(self, name, file="ixp.clab.yml", edit=None, only=None, shared=False):
        self.name = name if shared else f"{name}-{os.getpid()}"
        self.only = only
        self.state = None
        atexit.register(self.down)  # also when the program is interrupted
        if shared:
            self.folder = None
            self.file = ROOT / "lab" / file
            return
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peerlan-lab-"))
        for source in ("ixp.clab.yml", "plain.clab.yml", "ixp"):
            path = ROOT / "lab" / source
            (shutil.copytree if path.is_dir() else shutil.copy)(path, self.folder / source)
        for path, change in (edit or {}).items():
            text = (self.folder / path).read_text()
            changed = change(text)
            assert changed != text, f"the edit of {path} changes nothing"
            (self.folder / path).write_text(changed)
        self.file = self.folder / file

    def netlab(self, command, *arguments, check=True):
        r = subprocess.run([sys.executable, str(ROOT / "lab" / "netlab.py"), command, str(self.file),
                            "--name", self.name, *arguments],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if check and r.returncode:
            raise AssertionError(f"netlab {command}: {r.stdout}")
        return r

    def up(self):
        try:
            self.netlab("up", "--build", str(BUILD), *(["--only", self.only] if self.only else []))
        except BaseException:
            self.down()
            raise
        self.state = netlab.State(self.name)
        return self

    def keep(self):
        """Leaves it up when the program ends."""
        atexit.unregister(self.down)

    def down(self):
        with netlab.Uninterrupted():
            if self.file.exists():
                self.netlab("down", check=False)
            if self.folder:
                shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.down)

    # --- processes in nodes
    def command(self, node, *argv):
        return netlab.inside(self.state, node, [str(a) for a in argv])

    def environment(self):
        return {**os.environ, **netlab.node_environment({})}

    def run(self, node, *argv, check=True, timeout=60):
        r = subprocess.run(self.command(node, *argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, timeout=timeout, env=self.environment(), check=False)
        if check and r.returncode:
            raise AssertionError(f"{node}: {' '.join(map(str, argv))}: exit {r.returncode}: {r.stdout}{r.stderr}")
        return r

    def output(self, node, *argv):
        return self.run(node, *argv).stdout

    def start(self, node, *argv):
        return subprocess.Popen(self.command(node, *argv), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.environment())

    def socket(self, node, family, kind):
        """A socket that lives in the node's network."""
        here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(
            f"/run/netns/{self.state.nodes[node]['netns']}", os.O_RDONLY)
        try:
            if netlab.libc.setns(there, 0):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return socket.socket(family, kind)
            finally:
                assert netlab.libc.setns(here, 0) == 0
        finally:
            os.close(here)
            os.close(there)

    def log(self, node):
        return pathlib.Path(self.state.log(node)).read_text(errors="replace")

    # --- the daemon
    def show(self, node, what, *filters):
        r = self.run(node, "peerlan", "show", what, "--json", *filters, check=False)
        return json.loads(r.stdout)[what] if r.returncode == 0 else None

    def pid(self, node, daemon="peerland"):
        """The daemon's pid inside the node, or None."""
        text = self.run(node, "peerlan-node", "pid", daemon, check=False).stdout.strip()
        return int(text) if text else None

    def kill(self, node, number=signal.SIGKILL, daemon="peerland"):
        """Ends the daemon of a node and waits until it is gone."""
        pid = self.pid(node, daemon)
        assert pid, f"no {daemon} in {node}: {self.log(node)[-2000:]}"
        self.run(node, "kill", f"-{int(number)}", pid)
        wait_for(f"{daemon} of {node} to end", lambda: self.pid(node, daemon) is None, 30)

    def start_peerland(self, node, other=False):
        """`other`: another build of it, with another layout of the eBPF maps."""
        words = ["peerlan-node", "start", "peerland"]
        if other:
            words = ["sh", "-c", f'PATH={BUILD}/bin/other:$PATH exec {" ".join(words)}']
        self.run(node, *words)

    def drops(self, node, port, direction=None):
        """Packets by reason."""
        by_reason = {}
        for row in self.show(node, "drops", "--port", port) or []:
            if direction in (None, row["direction"]):
                by_reason[row["reason"]] = by_reason.get(row["reason"], 0) + row["packets"]
        return by_reason

    def in_service(self, node):
        summary = self.show(node, "summary")
        return bool(summary and summary["converged"] and summary["neighbors_established"] >= 1
                    and all(d["ports_up"] == d["ports"] for d in summary["domains"]))

    def vtysh(self, command):
        return self.run("pe3", "vtysh", "-c", command, check=False).stdout

    def wait_converged(self, timeout=60):
        """Every PE knows the MACs of all members."""
        def ready():
            for pe in ("pe1", "pe2"):
                if not self.in_service(pe):
                    return False
                macs = {row["mac"]: row["where"] for row in self.show(pe, "macs") or []}
                for n in MEMBERS:
                    if macs.get(mac(n)) != ("local" if pe_of(n) == pe else "remote"):
                        return False
            return self.vtysh("show evpn mac vni all").count("remote") >= 4
        try:
            wait_for("all MACs on all PEs", ready, timeout)
        except AssertionError as e:
            logs = "\n".join(f"--- {n}\n{self.log(n)[-1500:]}" for n in ("rs1", "pe1", "pe2"))
            raise AssertionError(f"{e}\n{self.vtysh('show evpn mac vni all')}\n{logs}") from None
        return self

    # --- traffic
    def frames(self, node, *argv, check=True):
        r = self.run(node, "peerlan-frames", *argv, check=check, timeout=120)
        return json.loads(r.stdout)

    def quiet_members(self):
        """No neighbour entries, so that no kernel of a member asks for anything by itself."""
        for n in MEMBERS:
            if f"m{n}" in self.state.nodes:  # not with `only`
                self.run(f"m{n}", "ip", "neigh", "flush", "all", check=False)

    def targets(self, asker, family):
        """--target arguments for all other members."""
        address = ip4 if family == 4 else ip6
        return [word for n in MEMBERS if n != asker for word in ("--target", f"{address(n)}={mac(n)}")]

    def ask(self, asker, family, count=1000, rate=1000):
        return self.frames(f"m{asker}", "ask", "eth1", *self.targets(asker, family),
                           "--count", count, "--rate", rate, check=False)

    @contextlib.contextmanager
    def counting(self, members=MEMBERS, core=True):
        """Counts what arrives at members, and inside VXLAN at the core, until the block ends; yields
        a dictionary that then holds name -> the counter's document. The members' kernels, which would
        refresh neighbours of earlier tests, are made to forget them."""
        self.quiet_members()
        places = [(f"m{n}", f"m{n}", "eth1", []) for n in members]
        if core:
            places += [(f"core-{i}", "core", i, ["--vxlan"]) for i in ("pe1", "pe2", "pe3")]
        with self._children("count", places) as results:
            yield results

    @contextlib.contextmanager
    def probing(self, sources, interval=1000, targets=MEMBERS):
        """An ICMP echo a millisecond from each source member to all other targets, both families,
        during the block; then name of source -> the prober's document."""
        addresses = {n: self._others(n, targets) for n in sources}
        resolving = [self.start(f"m{n}", "peerlan-frames", "probe", *addresses[n], "--seconds", 0.5, "--interval", 20000)
                     for n in sources]  # addresses resolved before
        for child in resolving:
            child.communicate(timeout=60)
        places = [(f"m{n}", f"m{n}", None, [*addresses[n], "--interval", str(interval)]) for n in sources]
        with self._children("probe", places) as results:
            yield results

    @staticmethod
    def _others(n, targets):
        return [a for m in targets if m != n for a in (ip4(m), ip6(m))]

    @contextlib.contextmanager
    def _children(self, command, places):
        results, children = {}, []
        ready = pathlib.Path(tempfile.mkdtemp(prefix="peerlan-ready-"))
        try:
            for name, node, interface, more in places:
                argv = ["peerlan-frames", command, *([interface] if interface else []), *more,
                        "--ready", str(ready / name)]
                children.append((name, self.start(node, *argv)))
            wait_for(f"peerlan-frames {command} to listen",
                     lambda: all((ready / name).exists() for name, _ in children), 30)
            yield results
        finally:
            shutil.rmtree(ready, ignore_errors=True)
            for _, child in children:
                ask_to_end(child)
            for name, child in children:
                out, err = child.communicate(timeout=60)
                results[name] = json.loads(out) if out else {"error": err}


def _descendants(pid):
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(c) for c in children] + [d for c in children for d in _descendants(int(c))]


def ask_to_end(child):
    """SIGTERM to what Lab.start() began: nsenter only waits for the program in the node's PID namespace."""
    for pid in _descendants(child.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def stop(child):
    ask_to_end(child)
    return child.communicate(timeout=60)


def lost(results):
    """Of probing(): {(source, target): (lost, longest gap in ms)} where something was lost."""
    return {(source, t["target"]): (t["lost"], t["longest_gap_ms"])
            for source, document in results.items() for t in document["targets"] if t["lost"]}


def of_classes(document, classes=ARP_ND):
    return {c: n for c, n in document["frames"].items() if c in classes}


class LabCase(unittest.TestCase):
    """One lab for all tests of a class; `edit`, `file` and `only` as Lab's."""
    name = "t"
    file = "ixp.clab.yml"
    edit = None
    only = None
    converge = True

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(cls.name, cls.file, cls.edit, cls.only)
        cls.addClassCleanup(cls.lab.down)
        cls.lab.up()
        if cls.converge:
            cls.lab.wait_converged()
