#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is lost, and for how long, when something fails: packets of a 1 ms ping between members over restarts, kills,
# reloads, moves and deaths, with peerland and with FRRouting as the other PE; and how fast many MACs come and go.
# Needs root and the release build.
#   bench/failover.sh          all, some minutes; prints the tables
#   bench/failover.sh --write  and writes them into docs/failover.md
#   bench/failover.sh --case reload   only the failures with this in their name; prints
set -u
cd "$(dirname "$0")/.." || exit 1
[ "$(id -u)" = 0 ] || {
  echo "needs root" >&2
  exit 1
}
exec /usr/bin/python3 bench/failover.py "$@"
