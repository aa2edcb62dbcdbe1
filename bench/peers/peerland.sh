# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034  # PID and PIDS: for common.sh
# This project's daemon. PEERLAND: the binary.
PEERLAND=${PEERLAND:-$ROOT/build/release/bin/peerland}
peerland_version() {  # a line, or the reason why not on standard error
  [ -x "$PEERLAND" ] || { echo "no $PEERLAND" >&2; return 1; }
  echo "peerland $("$PEERLAND" --version), $(git -C "$ROOT" rev-parse --short HEAD 2>/dev/null)"
}
peerland_start() {
  local dir=$SCRATCH/peerland
  rm -rf "$dir" && mkdir -p "$dir"
  {
    echo "node: rr"
    echo "as: $AS"
    echo "router-id: $DUT"
    echo "control: {socket: $dir/control.sock}"
    echo "log: {level: warning}"
    echo "bgp:"
    echo "  selection-deferral: 0s"  # the late joiner would be waited for
    echo "  listen: [{address: $DUT}]"
    echo "  groups:"
    echo "    clients: {as: $AS, role: reflector-client, passive: true, hold-time: 180}"
    echo "  neighbors:"
    for a in $(peers "$1" "$2"); do echo "    - {address: $a, group: clients}"; done
  } >"$dir/peerland.yaml"
  ip netns exec "$DUT_NS" "$PEERLAND" --config "$dir/peerland.yaml" >"$dir/log" 2>&1 8>&- &
  PID=$! PIDS=($!)
}
