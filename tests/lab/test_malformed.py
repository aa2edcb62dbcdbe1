# SPDX-License-Identifier: GPL-2.0-or-later
"""A scripted BGP speaker sends each message type cut off at each length: the daemon answers with the right
NOTIFICATION or drops the session, lives on, and no other session notices."""
import socket
import struct
import time
import unittest

import labkit

MARKER = b"\xff" * 16
NEIGHBORS = 500
OPEN, UPDATE, NOTIFICATION, KEEPALIVE, ROUTE_REFRESH = 1, 2, 3, 4, 5


def neighbor(n):
    return f"10.21.{n // 250}.{n % 250 + 1}"


def more_neighbors(text):
    return text + "".join(f"    - {{ address: {neighbor(n)}, group: tests, connect-retry: 1 }}\n" for n in range(NEIGHBORS))


def message(kind, body=b"", length=None):
    return MARKER + struct.pack("!HB", 19 + len(body) if length is None else length, kind) + body


def open_body():
    capabilities = (struct.pack("!BBHBB", 1, 4, 25, 0, 70) + struct.pack("!BB", 2, 0)
                    + struct.pack("!BBI", 65, 4, 65000))
    parameter = struct.pack("!BB", 2, len(capabilities)) + capabilities
    return struct.pack("!BHH4sB", 4, 65000, 90, socket.inet_aton("10.0.0.21"), len(parameter)) + parameter


def attribute(flags, code, value):
    return struct.pack("!BBB", flags, code, len(value)) + value


def evpn_mac(octet):
    rd = struct.pack("!H4sH", 1, socket.inet_aton("10.0.0.21"), 7)
    nlri = (rd + b"\0" * 10 + b"\0" * 4 + b"\x30" + bytes([2, 0, 0, 0, 1, octet]) + b"\x20"
            + socket.inet_aton(f"192.0.2.{octet}") + b"\0\x06\x40")
    return bytes([2, len(nlri)]) + nlri


def update_body(octet=250):
    reach = struct.pack("!HBB4sB", 25, 70, 4, socket.inet_aton("10.0.0.21"), 0) + evpn_mac(octet)
    attributes = (attribute(0x40, 1, b"\0") + attribute(0x40, 2, b"") + attribute(0x40, 5, struct.pack("!I", 100))
                  + attribute(0xc0, 16, struct.pack("!BBHI", 0, 2, 65000, 100)
                              + struct.pack("!BBHI", 3, 0x0c, 0, 8)) + attribute(0x80, 14, reach))
    return struct.pack("!HH", 0, len(attributes)) + attributes


class Session:
    """A TCP connection from the monitor to rs1. Each from an address of its own unless told otherwise: after
    an error a neighbor has to wait, longer each time, before it is let in again."""
    used = 0

    def __init__(self, lab, source=None):
        if source is None:
            Session.used += 1
            assert Session.used < NEIGHBORS, "more sessions than neighbors"
        self.source = source or neighbor(Session.used)
        deadline = time.monotonic() + 20
        while True:
            self.socket = lab.socket("monitor", socket.AF_INET, socket.SOCK_STREAM)
            self.socket.settimeout(10)
            self.buffer = b""
            try:
                self.socket.bind((self.source, 0))
                self.socket.connect(("10.0.0.9", 179))
                first = self.read()  # its OPEN; nothing if it doesn't want us yet
                if first and first[0] == OPEN:
                    return
            except OSError:
                pass
            self.socket.close()
            assert time.monotonic() < deadline, f"rs1 accepts no session from {self.source}"
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # it has closed already; read() tells what it said before

    def read(self):
        """(type, body) of the next message, None at the end of the stream."""
        def need(n):
            while len(self.buffer) < n:
                try:
                    data = self.socket.recv(65536)
                except ConnectionError:
                    data = b""
                if not data:
                    return False
                self.buffer += data
            return True
        if not need(19):
            return None
        length, kind = struct.unpack("!HB", self.buffer[16:19])
        if not need(length):
            return None
        body, self.buffer = self.buffer[19:length], self.buffer[length:]
        return kind, body

    def notification(self):
        """(code, subcode) of the NOTIFICATION with which the session ends, None when it ends without."""
        while (got := self.read()) is not None:
            if got[0] == NOTIFICATION:
                return got[1][0], got[1][1]
        return None

    def establish(self):
        self.send(message(OPEN, open_body()) + message(KEEPALIVE))
        while (got := self.read()) is not None:
            if got[0] == KEEPALIVE:
                return self
            assert got[0] != NOTIFICATION, f"session refused: {got[1]!r}"
        raise AssertionError("session ended before it was established")


@labkit.needs("peerland", "peerlan", "peerlan-frames")
class Malformed(labkit.LabCase):
    name = "malformed"
    edit = {"ixp/rs1.yaml": more_neighbors}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run("monitor", "ip", "route", "add", "local", "10.21.0.0/16", "dev", "lo")
        cls.lab.run("core", "ip", "route", "add", "10.21.0.0/16", "via", "10.1.20.1")

    def others(self):
        return {n["address"]: (n["state"], n["established_count"])
                for n in self.lab.show("rs1", "neighbors") if not n["address"].startswith("10.21.")}

    def setUp(self):
        labkit.wait_for("GoBGP's session", lambda: self.others()["10.0.0.20"][0] == "Established")
        self.before, self.pid = self.others(), self.lab.pid("rs1")

    def tearDown(self):
        self.assertEqual(self.lab.pid("rs1"), self.pid)
        self.assertEqual(self.others(), self.before)
        with Session(self.lab) as s:  # and it still takes a right session
            s.establish()
            s.send(message(UPDATE, update_body()))
            labkit.wait_for("the route of a right UPDATE", lambda: any(
                r["mac"] == "02:00:00:00:01:fa" for r in self.lab.show("rs1", "routes", "--type", 2)))

    def each_length(self, kind, body, established, right):
        """Sends the message cut to each length, with a header that says so; `right`: length -> the
        NOTIFICATIONs that are right."""
        for length in range(19, 19 + len(body)):
            with self.subTest(type=kind, length=length), Session(self.lab) as s:
                if established:
                    s.establish()
                s.send(message(kind, body[: length - 19]))
                s.socket.shutdown(socket.SHUT_WR)
                self.assertIn(s.notification(), right(length))

    def test_open(self):
        # RFC 4271 section 6.1 (bad message length, below 29) and 6.2 (unspecific: bad optional parameters).
        self.each_length(OPEN, open_body(), False, lambda n: {(1, 2)} if n < 29 else {(2, 0), (1, 2)})

    def test_update(self):
        # RFC 7606 section 4: what can't be parsed as a whole resets the session with Malformed Attribute List.
        self.each_length(UPDATE, update_body(), True, lambda n: {(1, 2)} if n < 23 else {(3, 1)})

    def test_notification(self):
        # Never answered (RFC 4271 section 6.4); a length below 21 is wrong all the same.
        self.each_length(NOTIFICATION, b"\x06\x02abc", True, lambda n: {(1, 2), None} if n < 21 else {None})

    def test_route_refresh(self):
        # RFC 7313 section 5 gives wrong lengths a code of their own.
        self.each_length(ROUTE_REFRESH, struct.pack("!HBB", 25, 0, 70), True, lambda _: {(7, 1), (1, 2)})

    def test_a_neighbor_that_was_wrong_is_let_in_again(self):
        with Session(self.lab) as s:
            s.send(message(77))
            self.assertEqual(s.notification(), (1, 3))
        with Session(self.lab, s.source) as again:
            again.establish()

    def test_a_keepalive_that_is_too_long(self):
        with Session(self.lab) as s:
            s.establish()
            s.send(message(KEEPALIVE, b"\0"))
            self.assertEqual(s.notification(), (1, 2))

    def test_headers(self):
        cases = {"length 0": (MARKER + b"\0\0\x04", (1, 2)), "length 18": (MARKER + b"\0\x12\x04", (1, 2)),
                 "length 65535": (MARKER + b"\xff\xff\x02", (1, 2)), "type 0": (message(0), (1, 3)),
                 "type 77": (message(77), (1, 3)), "marker": (b"\0" * 16 + b"\0\x13\x04", (1, 1))}
        for established in (False, True):
            for name, (data, right) in cases.items():
                if established and name == "length 65535":
                    continue  # RFC 8654: we said that we take it, so it is the beginning of a message
                with self.subTest(name, established=established), Session(self.lab) as s:
                    if established:
                        s.establish()
                    s.send(data)
                    self.assertEqual(s.notification(), right)

    def test_each_cut_of_the_stream_itself(self):
        # The header promises more than comes before the connection ends: no answer is due, only survival.
        for kind, body, established in ((OPEN, open_body(), False), (UPDATE, update_body(), True),
                                        (ROUTE_REFRESH, struct.pack("!HBB", 25, 0, 70), True)):
            whole = message(kind, body)
            for length in range(1, len(whole), 5):
                with Session(self.lab) as s:
                    if established:
                        s.establish()
                    s.send(whole[:length])
            self.assertEqual(self.lab.pid("rs1"), self.pid)

    def test_wrong_opens(self):
        good = bytearray(open_body())
        for name, at, value, right in (("version", 0, b"\x03", (2, 1)), ("AS", 1, b"\x00\x01", (2, 2)),
                                       ("hold time", 3, b"\x00\x01", (2, 6)), ("identifier", 5, b"\0\0\0\0", (2, 3))):
            body = bytearray(good)
            body[at:at + len(value)] = value
            if name == "AS":  # in the capability too, which is what counts
                body[-4:] = struct.pack("!I", 1)
            with self.subTest(name), Session(self.lab) as s:
                s.send(message(OPEN, bytes(body)))
                self.assertEqual(s.notification(), right)


if __name__ == "__main__":
    unittest.main()
