# SPDX-License-Identifier: GPL-2.0-or-later
"""What an UPDATE means on a session for EVPN with four-octet AS numbers: a second implementation of RFC
4271, 4760, 7432 and 7606, written from the texts and not from the daemon's, for comparing the two.

judge(body) returns a Verdict: the session's fate, and what happens to each route (key -> NLRI octets, or
None when withdrawn)."""
import dataclasses
import ipaddress

OK, RESET = "ok", "reset"


class Reset(Exception):
    pass


class TreatAsWithdraw(Exception):
    pass


class DiscardAttribute(Exception):
    pass


@dataclasses.dataclass
class Verdict:
    fate: str = OK
    routes: dict = dataclasses.field(default_factory=dict)
    withdrawn_all: bool = False  # treat-as-withdraw
    discarded_attributes: set = dataclasses.field(default_factory=set)
    attributes: dict = dataclasses.field(default_factory=dict)  # code -> (flags, value), the good ones
    next_hop: object = None


def take(data, n):
    if n > len(data):
        raise ValueError
    return data[:n], data[n:]


# --- Routes: RFC 7432 section 7, RFC 9136 section 3.1, RFC 9251 section 9, RFC 9572 section 3

def address_bits(bits, allowed=(32, 128)):
    if bits not in allowed:
        raise ValueError
    return bits // 8


def address_end(body, at, allowed=(32, 128)):
    """Where the address, whose length in bits stands at `at`, ends."""
    end = at + 1 + address_bits(body[at], allowed)
    if end > len(body):
        raise ValueError
    return end


def key_of(kind, body):
    """The octets that make a route the same as another; ValueError: values outside the type's scope."""
    try:
        if kind == 1:
            if len(body) != 25:
                raise ValueError
            return body[:22]
        if kind == 2:
            if len(body) < 33 or body[22] != 48:
                raise ValueError
            end = address_end(body, 29, (0, 32, 128))
            if len(body) - end not in (3, 6):
                raise ValueError
            return body[:8] + body[18:end]
        if kind == 3:
            if address_end(body, 12) != len(body):
                raise ValueError
            return body
        if kind == 4:
            if address_end(body, 18) != len(body):
                raise ValueError
            return body
        if kind == 5:
            size = {34: 4, 58: 16}.get(len(body))
            if size is None or body[22] > size * 8:
                raise ValueError
            bits = body[22]
            prefix = int.from_bytes(body[23:23 + size], "big") >> (size * 8 - bits) << (size * 8 - bits)
            return body[:8] + body[18:23] + prefix.to_bytes(size, "big")
        if kind in (6, 7, 8, 10):
            at = 22 if kind in (7, 8) else 12
            source = address_end(body, at, (0, 32, 128))
            group = address_end(body, source, (0, 32, 128))
            end = address_end(body, group)
            rest = {6: 1, 7: 1, 8: 6, 10: 0}[kind]
            if len(body) != end + rest:
                raise ValueError
            return body[:end]
        if kind == 9:
            if len(body) != 20:
                raise ValueError
            return body
        if kind == 11:
            return body
    except IndexError:
        raise ValueError from None
    raise ValueError  # RFC 7606 section 5.4


def is_meaningless(nlri):
    """A prefix with both ESI and gateway is treated as withdrawn (RFC 9136 section 3.1)."""
    gateway = {36: slice(29, 33), 60: slice(41, 57)}.get(len(nlri))
    return nlri[0] == 5 and gateway is not None and any(nlri[10:20]) and any(nlri[gateway])


def split_nlri(data, withdrawn=None):
    """{key: NLRI}; raises Reset when the frame is broken (RFC 7606 section 5.3). Of routes that are announced,
    the keys of those that are treated as withdrawn are added to `withdrawn`."""
    routes = {}
    while data:
        if len(data) < 2 or len(data) < 2 + data[1]:
            raise Reset
        nlri, data = data[:2 + data[1]], data[2 + data[1]:]
        try:
            key = bytes([nlri[0]]) + key_of(nlri[0], nlri[2:])
        except ValueError:
            continue
        if withdrawn is not None and is_meaningless(nlri):
            withdrawn.add(key)
        else:
            routes[key] = nlri
    return routes


# --- Attributes: RFC 7606 section 7

def need(condition, error=TreatAsWithdraw):
    if not condition:
        raise error


def as_path(value, error):
    while value:
        need(len(value) >= 2, error)
        kind, count = value[0], value[1]
        numbers, value = value[2:2 + 4 * count], value[2 + 4 * count:]
        need(1 <= kind <= 4 and count > 0 and len(numbers) == 4 * count, error)
        need(all(numbers[i:i + 4] != b"\0\0\0\0" for i in range(0, len(numbers), 4)), error)  # RFC 7607


def pmsi(value):
    need(len(value) >= 5)
    need(value[1] != 6 or len(value) in (9, 21))


def aggregator(value):
    need(len(value) == 8 and value[:4] != b"\0\0\0\0", DiscardAttribute)


RULES = {  # code: (optional, transitive, check)
    1: (0, 1, lambda v: need(len(v) == 1 and v[0] <= 2)),
    2: (0, 1, lambda v: as_path(v, TreatAsWithdraw)),
    3: (0, 1, lambda v: need(len(v) == 4)),
    4: (1, 0, lambda v: need(len(v) == 4)),
    5: (0, 1, lambda v: need(len(v) == 4)),
    6: (0, 1, lambda v: need(len(v) == 0, DiscardAttribute)),
    7: (1, 1, aggregator),
    8: (1, 1, lambda v: need(v and len(v) % 4 == 0)),
    9: (1, 0, lambda v: need(len(v) == 4)),
    10: (1, 0, lambda v: need(v and len(v) % 4 == 0)),
    16: (1, 1, lambda v: need(v and len(v) % 8 == 0)),
    22: (1, 1, pmsi),
    32: (1, 1, lambda v: need(v and len(v) % 12 == 0)),
}


def mp_reach(value, withdrawn):
    """(routes, next hop, error or None); RFC 4760 section 3, RFC 7606 section 7.11. Adds to `withdrawn` as
    split_nlri()."""
    need(len(value) >= 5, Reset)
    length = value[3]
    need(len(value) >= 5 + length, Reset)
    if value[:3] != b"\0\x19\x46":
        return {}, None, None
    need(length in (4, 16, 32), Reset)
    hop = ipaddress.ip_address(value[4:4 + (4 if length == 4 else 16)])
    wrong = int(hop) == 0 or hop.is_multicast
    return split_nlri(value[5 + length:], withdrawn), hop, TreatAsWithdraw if wrong else None


def mp_unreach(value):
    need(len(value) >= 3, Reset)
    return split_nlri(value[3:]) if value[:3] == b"\0\x19\x46" else {}


def ipv4_prefixes(data):
    while data:
        bits, data = data[0], data[1:]
        size = (bits + 7) // 8
        need(bits <= 32 and size <= len(data), Reset)
        data = data[size:]


def judge(body):
    verdict = Verdict()
    try:
        _judge(body, verdict)
    except Reset:
        return Verdict(RESET)
    return verdict


def _judge(body, verdict):
    try:
        length, rest = take(body, 2)
        withdrawn, rest = take(rest, int.from_bytes(length, "big"))
        length, rest = take(rest, 2)
        attributes, nlri = take(rest, int.from_bytes(length, "big"))
    except ValueError:
        raise Reset from None
    ipv4_prefixes(withdrawn)
    ipv4_prefixes(nlri)
    reach, unreach, seen, meaningless = {}, {}, set(), set()
    overrun = False
    while attributes:
        flags = attributes[0]
        head = 4 if flags & 0x10 else 3
        size = int.from_bytes(attributes[2:head], "big")
        if len(attributes) < head + size:  # RFC 7606 section 4
            overrun = verdict.withdrawn_all = True
            break
        code, value, attributes = attributes[1], attributes[head:head + size], attributes[head + size:]
        if code in seen:  # RFC 7606 section 3g
            need(code not in (14, 15), Reset)
            continue
        seen.add(code)
        kind = flags & 0xc0
        try:
            if code == 14:
                reach, verdict.next_hop, wrong = mp_reach(value, meaningless)
                if wrong or kind != 0x80:
                    raise TreatAsWithdraw
            elif code == 15:
                unreach = mp_unreach(value)
                need(kind == 0x80)
            elif code in (17, 18):
                pass  # RFC 6793 section 4.1: between four-octet speakers to be discarded
            elif code in RULES:
                optional, transitive, check = RULES[code]
                need(kind == optional << 7 | transitive << 6)
                check(value)
                # RFC 4271 section 5: who understands an attribute does not clear Partial either.
                verdict.attributes[code] = (kind | (flags & 0x20 if kind == 0xc0 else 0), value)
            else:
                need(kind & 0x80)  # an unknown well-known one
                if kind & 0x40:
                    verdict.attributes[code] = (0xe0, value)
        except TreatAsWithdraw:
            verdict.withdrawn_all = True
        except DiscardAttribute:
            verdict.discarded_attributes.add(code)
    if reach and not {1, 2} <= seen:  # RFC 7606 section 3d
        verdict.withdrawn_all = True
    others = overrun or seen - {15}
    if verdict.withdrawn_all and 14 not in seen and not nlri and others:  # RFC 7606 section 5.2
        raise Reset
    # Withdrawals are worked off before announcements.
    verdict.routes = {key: None for key in [*unreach, *meaningless]}
    verdict.routes |= {key: None if verdict.withdrawn_all else nlri for key, nlri in reach.items()}


def well_formed(body):
    """Nothing is wrong at all, not even what RFC 7606 forgives: what we send must be so. The verdict."""
    verdict = judge(body)
    assert verdict.fate == OK and not verdict.withdrawn_all and not verdict.discarded_attributes, body.hex()
    at, end = 4 + int.from_bytes(body[:2], "big"), len(body)
    assert at == 4 and at + int.from_bytes(body[2:4], "big") == end, "IPv4 fields: " + body.hex()
    codes = []
    while at < end:
        head = 4 if body[at] & 0x10 else 3
        assert body[at] & 0x0f == 0, "unused flags"
        codes.append(body[at + 1])
        at += head + int.from_bytes(body[at + 2:at + head], "big")
    assert len(codes) == len(set(codes)) and codes[:1] in ([], [14], [15]), f"attributes {codes}"
    assert codes[1:] == sorted(codes[1:]), f"attributes {codes}"
    return verdict
