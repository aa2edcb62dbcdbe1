#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Has tshark dissect the octets of golden files and compares with what they say it must find. An independent
reader: what our encoder and decoder agree on could still be wrong for both.
  golden_tshark.py FILE...    exit code 77: tshark is not installed"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

MARKER = "ff" * 16
IMET = "03110001" + "0a0000010064" + "00000000" + "20" + "0a000001"


def attribute(flags, code, value):
    return f"{flags | 0x10:02x}{code:02x}{len(value) // 2:04x}{value}"


def update(nlri, communities=""):
    attributes = (attribute(0x80, 14, "001946" + "04" + "0a000001" + "00" + nlri) + attribute(0x40, 1, "00")
                  + attribute(0x40, 2, "") + (attribute(0xc0, 16, communities) if communities else ""))
    body = f"0000{len(attributes) // 2:04x}{attributes}"
    return f"{19 + len(body) // 2:04x}02{body}"


def message(name, octets):
    kind = name.split()[0]
    rest = update(octets) if kind == "nlri" else update(IMET, octets) if kind == "community" else octets
    return bytes.fromhex(MARKER + rest)


def capture(messages):
    """A pcap file's content, raw IPv4, each message in a TCP connection of its own."""
    out = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101)
    for number, octets in enumerate(messages):
        tcp = struct.pack("!HHIIBBHHH", 40000 + number, 179, 1, 1, 0x50, 0x18, 65535, 0, 0) + octets
        packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\2") + tcp
        out += struct.pack("<IIII", number, 0, len(packet), len(packet)) + packet
    return out


def fields(tree, found):
    """All values of each field name, in the order of the packet."""
    for key, value in (tree.items() if isinstance(tree, dict) else ((None, v) for v in tree)):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (dict, list)):
                fields(item, found)
            elif item != "":
                found.setdefault(key, []).append(item)
    return found


def main():
    if not shutil.which("tshark"):
        print("tshark is not installed")
        sys.exit(77)
    rows = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as lines:
            rows += [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(capture([message(name, octets) for name, octets, _ in rows]))
        file.flush()
        r = subprocess.run(["tshark", "-n", "-r", file.name, "-T", "json", "-J", "bgp", "--no-duplicate-keys",
                            "-o", "bgp.asn_len:4"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                           env={**os.environ, "HOME": "/nonexistent"})
    packets = json.loads(r.stdout)
    assert len(packets) == len(rows) > 0, f"{len(packets)} packets of {len(rows)}"
    wrong = 0
    for (name, _, expected), packet in zip(rows, packets):
        found = fields(packet["_source"]["layers"].get("bgp", {}), {})
        if expected == "-":
            continue
        if "_ws.malformed" in found:
            wrong += 1
            print(f"{name}: malformed, says tshark")
        for pair in expected.split("; "):
            key, value = pair.split("=", 1)
            if ",".join(found.get("bgp." + key, [])) != value:
                wrong += 1
                print(f"{name}: {key} is {found.get('bgp.' + key)}, not {value}")
    print(f"{len(rows)} golden rows, {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
