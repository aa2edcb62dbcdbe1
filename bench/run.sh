#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# bench/run.sh [--quick]: peerland beside FRRouting, GoBGP and BIRD as EVPN route reflectors, each
# as far as it is installed. Builds, measures all of them in turns (medians of 3 runs) and writes
# the tables of docs/performance.md. As root, on a machine that does nothing else; takes about an
# hour, --quick some minutes (small sizes, one run, and the tables only go to standard output).
#
# Environment: PEERS, SIZES, SHAPES (senders:receivers), RUNS, OUT (a folder for the JSON files;
# runs that are there already are not repeated), NO_BUILD=1, and the binaries: see peers/*.sh.
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1:-}" in
  --quick) QUICK=1 ;;
  "") QUICK= ;;
  *) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "network namespaces need root" >&2; exit 1; }
exec 8>/tmp/plbench.lock
flock -n 8 || { echo "another run is under way" >&2; exit 1; }

PEERS=${PEERS:-peerland frr bird gobgp}
SIZES=${SIZES:-${QUICK:+10000}}
SIZES=${SIZES:-10000 100000 1000000}
SHAPES=${SHAPES:-4:2 16:16}
RUNS=${RUNS:-${QUICK:+1}}
RUNS=${RUNS:-3}
OUT=${OUT:-$(mktemp -d /tmp/plbench-results.XXXXXX)}
LOAD=${LOAD:-$ROOT/build/release/bench/evpn_load}
mkdir -p "$OUT"

if [ -z "${NO_BUILD:-}" ]; then
  (cd "$ROOT" && cmake --preset release -DPEERLAN_BENCH=ON >/dev/null &&
    cmake --build build/release --target peerland evpn_load) || exit 1
fi
. "$ROOT/bench/common.sh"
have=()
: >"$OUT/versions.txt"
for peer in $PEERS; do
  # shellcheck source=/dev/null
  . "$ROOT/bench/peers/$peer.sh"
  if version=$("${peer}_version" 2>"$SCRATCH/why"); then
    have+=("$peer")
    printf '%s\t%s\n' "$peer" "$version" >>"$OUT/versions.txt"
  else
    echo "skipped: $peer: $(cat "$SCRATCH/why")" | tee -a "$OUT/versions.txt" >&2
  fi
done

gave_up=" "  # peer, shape and kind whose larger sizes are not tried any more
measure() {  # peer, shape, routes, kind, run, phases, options
  local peer=$1 shape=$2 routes=$3 kind=$4 run=$5 phases=$6 file
  shift 6
  file=$OUT/$kind-$peer-${shape/:/x}-$routes-$run.json
  [ -s "$file" ] && return
  case "$gave_up" in *" $peer,$shape,$kind "*) return ;; esac
  if declare -F "${peer}_limit" >/dev/null && [ "$routes" -gt "$("${peer}_limit")" ]; then
    return
  fi
  echo "$(date +%T) run $run: $peer, $shape, $routes routes, $kind" >&2
  one_run "$peer" "${shape%:*}" "${shape#*:}" "$routes" "$file" "$phases" "$@" && return
  echo "failed or took over 300 s: larger sizes of this kind are left out" >&2
  gave_up+="$peer,$shape,$kind "
}

for ((run = 1; run <= RUNS; run++)); do
  for shape in $SHAPES; do
    for routes in $SIZES; do
      for peer in "${have[@]}"; do
        probes=$((QUICK ? 100 : 1000))
        [ "$peer" = frr ] && probes=40  # each waits 50 ms in its queue
        measure "$peer" "$shape" "$routes" bulk "$run" \
          announce,withdraw,reannounce,latency,late,drop --latency-n $probes
      done
    done
  done
  # An attribute set of its own for each route.
  for peer in "${have[@]}"; do
    routes=$((QUICK ? 10000 : 100000))
    measure "$peer" 4:2 $routes unique "$run" announce,withdraw,reannounce \
      --attr-sets $((routes / 4))
  done
done
if [ -n "$QUICK" ]; then
  "$ROOT/bench/report.py" "$OUT"
else
  "$ROOT/bench/report.py" "$OUT" --write "$ROOT/docs/performance.md"
fi
echo "results: $OUT" >&2
