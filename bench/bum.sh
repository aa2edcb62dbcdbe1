#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# bench/bum.sh [--quick] [--write]: what the BUM policy costs and how exact its limits are, beside
# empty programs on the same hooks, a minimal eBPF limiter and nftables bridge rules, interleaved in
# one run. As root, on a quiet machine; a quarter of an hour. --quick: fewer ports, rounds and sizes,
# some minutes. --write: docs/performance-bum.md as well as standard output.
#
# Environment: ROUNDS, SECONDS_EACH, PORTS ("2 16 64 200"), STORMS ("64 200"), SPANS (of exactness,
# "5 60"), NO_BUILD=1, BUILD (build/release).
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ "$(id -u)" = 0 ] || { echo "network namespaces need root" >&2; exit 1; }
exec 8>/tmp/plbench.lock
flock -n 8 || { echo "another run is under way" >&2; exit 1; }
export BUILD=${BUILD:-$ROOT/build/release}
if [ -z "${NO_BUILD:-}" ]; then
  (cd "$ROOT" && cmake --preset release -DPEERLAN_BENCH=ON >/dev/null &&
    cmake --build "$BUILD" --target bum_bench) || exit 1
fi
exec /usr/bin/python3 "$ROOT/bench/bum/measure.py" "$@"
