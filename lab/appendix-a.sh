#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The 22 cases of proxy ARP/ND at an access port: the bridge's neigh_suppress and peerlan side by side, as both are
# seen on the wires. As root, with the programs built (build/release, or PEERLAN_BUILD).
exec /usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/../tests/lab/appendix_a.py"
