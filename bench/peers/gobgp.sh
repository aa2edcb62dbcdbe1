# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034  # PID and PIDS: for common.sh
# GoBGP. GOBGPD: the binary.
GOBGPD=${GOBGPD:-gobgpd}
gobgp_version() {
  command -v "$GOBGPD" >/dev/null || { echo "no $GOBGPD" >&2; return 1; }
  echo "GoBGP $("$GOBGPD" --version 2>&1 | grep -o '[0-9][0-9.]*' | head -1)"
}
# 3.x compares each new type 2 route with the whole table: quadratic.
gobgp_limit() {
  case $(gobgp_version) in *" 3."*) echo 10000 ;; *) echo 100000 ;; esac
}
gobgp_start() {
  local dir=$SCRATCH/gobgp a
  rm -rf "$dir" && mkdir -p "$dir"
  {
    printf '[global.config]\nas = %s\nrouter-id = "%s"\nport = 179\n' "$AS" "$DUT"
    printf 'local-address-list = ["%s"]\n' "$DUT"
    for a in $(peers "$1" "$2"); do
      cat <<C
[[neighbors]]
  [neighbors.config]
    neighbor-address = "$a"
    peer-as = $AS
  [neighbors.transport.config]
    passive-mode = true
  [neighbors.route-reflector.config]
    route-reflector-client = true
    route-reflector-cluster-id = "$DUT"
  [[neighbors.afi-safis]]
    [neighbors.afi-safis.config]
      afi-safi-name = "l2vpn-evpn"
C
    done
  } >"$dir/gobgp.toml"
  ip netns exec "$DUT_NS" "$GOBGPD" -f "$dir/gobgp.toml" --api-hosts 127.0.0.1:50051 --log-plain -l warn \
    >"$dir/log" 2>&1 8>&- &
  PID=$! PIDS=($!)
}
