# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034  # PID and PIDS: for common.sh
# FRRouting: bgpd and zebra. FRR_BIN: their folder.
FRR_BIN=${FRR_BIN:-/usr/lib/frr}
frr_version() {
  { [ -x "$FRR_BIN/bgpd" ] && [ -x "$FRR_BIN/zebra" ]; } ||
    { echo "no bgpd and zebra in $FRR_BIN" >&2; return 1; }
  "$FRR_BIN/bgpd" --version | sed -n '1s/^bgpd version/FRRouting/p'
}
frr_start() {
  local dir=$SCRATCH/frr a
  rm -rf "$dir" && mkdir -p "$dir"
  {
    echo "log file $dir/bgpd.log warnings"
    echo "router bgp $AS"
    echo " bgp router-id $DUT"
    echo " bgp cluster-id $DUT"
    echo " no bgp default ipv4-unicast"
    for a in $(peers "$1" "$2"); do
      echo " neighbor $a remote-as $AS"
      echo " neighbor $a passive"
    done
    echo " address-family l2vpn evpn"
    for a in $(peers "$1" "$2"); do
      echo "  neighbor $a activate"
      echo "  neighbor $a route-reflector-client"
    done
    echo " exit-address-family"
  } >"$dir/bgpd.conf"
  echo "log file $dir/zebra.log warnings" >"$dir/zebra.conf"
  chmod -R a+rwX "$dir"
  ip netns exec "$DUT_NS" "$FRR_BIN/zebra" -f "$dir/zebra.conf" -i "$dir/zebra.pid" -z "$dir/zserv.api" \
    --vty_socket "$dir" -P 0 >"$dir/zebra.out" 2>&1 8>&- &
  local zebra=$!
  for ((k = 0; k < 50; k++)); do [ -S "$dir/zserv.api" ] && break; sleep 0.1; done
  ip netns exec "$DUT_NS" "$FRR_BIN/bgpd" -f "$dir/bgpd.conf" -i "$dir/bgpd.pid" -z "$dir/zserv.api" \
    --vty_socket "$dir" -P 0 >"$dir/bgpd.out" 2>&1 8>&- &
  PID=$! PIDS=($! "$zebra")
}
