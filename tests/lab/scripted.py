# SPDX-License-Identifier: GPL-2.0-or-later
"""A daemon as route reflector in a network namespace of its own, and scripted BGP speakers that talk to it
from there: for what needs no topology, only many sessions and their octets."""
import atexit
import contextlib
import ctypes
import ipaddress
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import labkit
from labkit import BUILD, wait_for

OPEN, UPDATE, NOTIFICATION, KEEPALIVE, ROUTE_REFRESH = 1, 2, 3, 4, 5
MARKER = b"\xff" * 16
AS = 65000
END_OF_RIB = bytes.fromhex("00000006800f03001946")
DAEMON = "10.99.0.1"


def message(kind, body=b""):
    return MARKER + struct.pack("!HB", 19 + len(body), kind) + body


def peer_address(n):
    return str(ipaddress.ip_address("10.100.0.1") + n)


class Namespace:
    """A network namespace in which 10.0.0.0/8 is local."""

    def __init__(self, name):
        self.name = f"{name}{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        atexit.register(self.remove)
        self.run("ip", "link", "set", "lo", "up")
        # On lo the whole prefix is local then, and FRRouting finds a route in the main table.
        self.run("ip", "addr", "add", f"{DAEMON}/8", "dev", "lo")

    def run(self, *argv, check=True):
        return subprocess.run(["ip", "netns", "exec", self.name, *map(str, argv)], check=check, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start(self, *argv, log=None, env=None):
        """The process itself: `ip netns exec` becomes it."""
        out = open(log, "ab") if log else subprocess.DEVNULL
        return subprocess.Popen(["ip", "netns", "exec", self.name, *map(str, argv)], stdin=subprocess.DEVNULL,
                                stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM):
        here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        libc = labkit.netlab.libc
        try:
            if libc.setns(there, 0):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return socket.socket(family, kind)
            finally:
                assert libc.setns(here, 0) == 0
        finally:
            os.close(here)
            os.close(there)

    def remove(self):
        atexit.unregister(self.remove)
        subprocess.run(["ip", "netns", "del", self.name], check=False, stderr=subprocess.DEVNULL)


class Reflector:
    """peerland on 10.99.0.1 with `neighbors`, YAML mappings without braces. `more`: further lines of bgp,
    `domains`: of broadcast-domains, which make it a PE."""

    def __init__(self, name, neighbors, more="", domains=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peerlan-scripted-"))
        self.net = Namespace(name)
        self.process = None
        self.settings = self.folder / "peerland.yaml"
        lines = "".join(f"    - {{ {n} }}\n" for n in neighbors)
        self.settings.write_text(
            f"node: rr\nrouter-id: {DAEMON}\nas: {AS}\n"
            f"control: {{ socket: {self.folder}/sock }}\n"
            f"bgp:\n  listen: [{{ address: {DAEMON} }}]\n  selection-deferral: 0\n{more}  neighbors:\n{lines}"
            + (f"vtep: {DAEMON}\npin-directory: {self.folder}/pins\nbroadcast-domains:\n{domains}" if domains else ""))
        atexit.register(self.stop)
        self.start()

    def start(self):
        self.process = self.net.start(BUILD / "bin" / "peerland", "--config", self.settings, log=self.folder / "log")
        wait_for("the daemon", lambda: self.show("neighbors") is not None or self.process.poll() is not None)
        assert self.process.poll() is None, self.log()

    def show(self, *what):
        r = subprocess.run([BUILD / "bin" / "peerlan", "-s", self.folder / "sock", "show", *what, "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return json.loads(r.stdout)[what[0]] if r.returncode == 0 else None

    def state(self, address):
        return next(n["state"] for n in self.show("neighbors") if n["address"] == address)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(30)

    def stop(self):
        atexit.unregister(self.stop)
        if self.process and self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.end()
            self.process.kill()
            self.process.wait()
        self.net.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


class Peer:
    """One session from an address of 10.0.0.0/8 to the reflector, established, End-of-RIB sent."""

    def __init__(self, net, address, as_number=AS, graceful_restart=False):
        self.address = address
        self.buffer = b""
        self.received = []  # (type, body), KEEPALIVEs left out
        self.closed = False
        deadline = time.monotonic() + 20
        while not self.try_connect(net, as_number, graceful_restart):
            assert time.monotonic() < deadline, f"no session from {address}"
            time.sleep(0.05)

    def try_connect(self, net, as_number, graceful_restart):
        self.buffer, self.received, self.closed = b"", [], False
        self.socket = net.socket()
        self.socket.settimeout(10)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.bind((self.address, 0))
            self.socket.connect((DAEMON, 179))
            self.socket.sendall(message(OPEN, self.open_body(as_number, graceful_restart)) + message(KEEPALIVE))
            confirmed = False
            while not confirmed:
                got = self.next_message()
                if got is None or got[0] == NOTIFICATION:
                    raise ConnectionError
                confirmed = got[0] == KEEPALIVE
            self.send(END_OF_RIB)
            return True
        except OSError:
            self.socket.close()
            return False

    def open_body(self, as_number, graceful_restart):
        capabilities = (struct.pack("!BBHBB", 1, 4, 25, 0, 70) + b"\x02\0" + b"\x06\0"
                        + struct.pack("!BBI", 65, 4, as_number))
        if graceful_restart:
            capabilities += struct.pack("!BBHHBB", 64, 6, 30, 25, 70, 0x80)
        parameter = struct.pack("!BB", 2, len(capabilities)) + capabilities
        as2 = as_number if as_number <= 0xffff else 23456
        return struct.pack("!BHH4sB", 4, as2, 90, socket.inet_aton(self.address), len(parameter)) + parameter

    def send(self, body, kind=UPDATE):
        try:
            self.socket.sendall(message(kind, body))
        except OSError:
            pass  # closed already; what came before says why

    def next_message(self):
        """The next message; None at the end of the stream, or when nothing comes in time."""
        while len(self.buffer) < 19 or len(self.buffer) < struct.unpack("!H", self.buffer[16:18])[0]:
            try:
                data = self.socket.recv(65536)
            except OSError:
                data = b""
            if not data:
                self.closed = True
                return None
            self.buffer += data
        length = struct.unpack("!H", self.buffer[16:18])[0]
        assert self.buffer[:16] == MARKER and length >= 19, "framing lost"
        got, self.buffer = (self.buffer[18], self.buffer[19:length]), self.buffer[length:]
        if got[0] != KEEPALIVE:
            self.received.append(got)
        return got

    def notification(self):
        """(code, subcode) with which the other side ends the session."""
        while (got := self.next_message()) is not None:
            if got[0] == NOTIFICATION:
                return got[1][0], got[1][1]
        return None

    def close(self):
        self.socket.close()
        self.closed = True
