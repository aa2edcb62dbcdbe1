#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks every #include of the project against the table in docs/architecture.md (who may include
whom). A rule that nothing checks is not a rule. Exit 1 and one line per violation."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()

SETTINGS = {"bgp": "bgp/settings.h", "evpn": "evpn/settings.h", "proxyarp": "proxyarp/settings.h",
            "dataplane": "dataplane/settings.h"}
# module -> (project headers it may include: folder or exact file, outside libraries)
ALLOWED = {
    "net": (set(), set()),
    "bgp": ({"net"}, set()),
    "bgp/io": ({"net", "bgp"}, {"asio", "spdlog"}),
    "evpn": ({"net", "bgp"}, set()),
    "proxyarp": ({"net"}, set()),
    "dataplane": ({"net"}, {"asio", "kernel", "pcap", "spdlog"}),
    "config": ({"net", "evpn/policy_settings.h"} | set(SETTINGS.values()), {"yaml", "json"}),
    "daemon": ({"net", "bgp", "bgp/io", "evpn", "proxyarp", "dataplane", "config"},
               {"asio", "beast", "json", "spdlog", "metrics", "cli11", "kernel-caps", "systemd"}),
    "cli": ({"net"}, {"asio", "json", "pcap", "cli11"}),
}
LIBRARIES = [
    (re.compile(r"boost/asio|boost/system"), "asio"),
    (re.compile(r"boost/beast"), "beast"),
    (re.compile(r"boost/json"), "json"),
    (re.compile(r"spdlog/|fmt/"), "spdlog"),
    (re.compile(r"yaml-cpp/"), "yaml"),
    (re.compile(r"netlink/|^bpf/"), "kernel"),
    (re.compile(r"^pcap"), "pcap"),
    (re.compile(r"prometheus/"), "metrics"),
    (re.compile(r"CLI/"), "cli11"),
    (re.compile(r"cap-ng"), "kernel-caps"),
    (re.compile(r"systemd/"), "systemd"),
]
# fmt alone is text, not logging: allowed where a module prints for people.
FMT_ONLY = re.compile(r"^fmt/")
FMT_MODULES = {"config", "daemon", "cli", "dataplane", "bgp/io"}
MODULES = sorted(ALLOWED, key=len, reverse=True)


def module_of(path):
    text = str(path)
    for module in MODULES:
        if text.startswith(module + "/"):
            return module
    return None


def check(relative, target):
    """None, or why `relative` must not include `target`."""
    module = module_of(relative)
    folders, libraries = ALLOWED[module]
    owner = module_of(target)
    if owner is not None:
        if owner == module or owner in folders or target in folders:
            return None
        return f"{module} must not include {target}"
    for pattern, library in LIBRARIES:
        if pattern.search(target):
            if library in libraries or (FMT_ONLY.match(target) and module in FMT_MODULES):
                return None
            return f"{module} must not use {library} ({target})"
    if "/" in target and (ROOT / target).exists():
        return f"{module} must not include {target}"
    return None


def self_test():
    assert check("net/x.cpp", "bgp/rib.h")
    assert check("bgp/x.cpp", "bgp/io/speaker.h")
    assert check("bgp/x.cpp", "boost/asio.hpp")
    assert check("proxyarp/x.cpp", "bgp/rib.h")
    assert check("evpn/x.cpp", "proxyarp/responder.h")
    assert check("config/x.cpp", "evpn/nlri.h")
    assert not check("config/x.cpp", "evpn/settings.h")
    assert not check("config/x.cpp", "evpn/policy_settings.h")
    assert check("config/x.cpp", "evpn/policy.h")
    assert not check("daemon/x.cpp", "bgp/io/speaker.h")


def main():
    self_test()
    bad = 0
    for module in ALLOWED:
        for path in sorted((ROOT / module).rglob("*")):
            if path.suffix not in (".h", ".cpp") or module_of(path.relative_to(ROOT)) != module:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
                why = match and check(path.relative_to(ROOT), match.group(1))
                if why:
                    bad += 1
                    print(f"{path.relative_to(ROOT)}:{number}: {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
