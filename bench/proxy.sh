#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# bench/proxy.sh [--quick] [--write]: proxy ARP/ND of peerland beside the minimal eBPF and libpcap
# responders and the bridge's neigh_suppress, interleaved in one run; medians of 3 rounds. As root,
# some minutes. --quick: one round. --write: docs/performance-proxy.md, else standard output.
#
# Environment: ROUNDS, SECONDS_EACH (1), NO_BUILD=1, BUILD (build/release).
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ "$(id -u)" = 0 ] || { echo "network namespaces need root" >&2; exit 1; }
exec 8>/tmp/plbench.lock
flock -n 8 || { echo "another run is under way" >&2; exit 1; }
export BUILD=${BUILD:-$ROOT/build/release}
if [ -z "${NO_BUILD:-}" ]; then
  (cd "$ROOT" && cmake --preset release -DPEERLAN_BENCH=ON >/dev/null &&
    cmake --build "$BUILD" --target peerland peerlan proxy_bench) || exit 1
fi
exec /usr/bin/python3 "$ROOT/bench/proxy/measure.py" "$@"
