# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034  # PID and PIDS: for common.sh
# BIRD, from 2.19 on: older ones have no EVPN. BIRD: the binary.
BIRD=${BIRD:-bird}
bird_version() {
  local version
  command -v "$BIRD" >/dev/null || { echo "no $BIRD" >&2; return 1; }
  version=$("$BIRD" --version 2>&1 | grep -o '[0-9][0-9.]*' | head -1)
  [ "$(printf '%s\n2.19\n' "$version" | sort -V | head -1)" = 2.19 ] ||
    { echo "BIRD $version has no EVPN, 2.19 or newer has" >&2; return 1; }
  echo "BIRD $version"
}
bird_start() {
  local dir=$SCRATCH/bird a n=0
  rm -rf "$dir" && mkdir -p "$dir"
  {
    echo "router id $DUT;"
    echo "log \"$dir/log\" { warning, error, fatal, bug };"
    echo "evpn table evpntab;"
    echo "protocol device { }"
    echo "protocol direct { ipv4; }"
    echo "template bgp pe {  # client is one of its words"
    echo "  local $DUT as $AS; rr client; rr cluster id $DUT; passive on;"
    echo "  evpn { table evpntab; igp table master4; import all; export all; };"
    echo "}"
    for a in $(peers "$1" "$2"); do echo "protocol bgp c$((++n)) from pe { neighbor $a as $AS; }"; done
  } >"$dir/bird.conf"
  ip netns exec "$DUT_NS" "$BIRD" -f -c "$dir/bird.conf" -s "$dir/ctl" -P "$dir/pid" >"$dir/out" 2>&1 8>&- &
  PID=$! PIDS=($!)
}
