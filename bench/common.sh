# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Shared by run.sh and the peers' files: two network namespaces joined by a veth pair (the daemon in
# one at 10.99.0.1, evpn_load in the other with an address for each session), a fresh daemon for
# each run, one JSON file a run. Whatever way the script ends, daemon and namespaces go.
DUT_NS=plbench_dut TOOL_NS=plbench_tool
DUT=10.99.0.1
AS=65000
PID='' PIDS=()
SCRATCH=$(mktemp -d /tmp/plbench.XXXXXX)
chmod 755 "$SCRATCH"

stop_pid() {  # ends one process that we started and waits for it to go
  [ -n "$1" ] && kill -0 "$1" 2>/dev/null || return 0
  kill "$1" 2>/dev/null
  for ((k = 0; k < 100; k++)); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.1; done
  kill -9 "$1" 2>/dev/null
}
stop_daemon() {
  local pid
  for pid in "${PIDS[@]}"; do stop_pid "$pid"; done
  PIDS=() PID=
}
net_down() {
  ip netns del $DUT_NS 2>/dev/null
  ip netns del $TOOL_NS 2>/dev/null
  true
}
cleanup() {
  stop_daemon
  net_down
  rm -rf "$SCRATCH"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

net_up() {  # senders, receivers
  net_down
  ip netns add $DUT_NS && ip netns add $TOOL_NS || return 1
  ip -n $DUT_NS link add plb0 type veth peer name plb1 netns $TOOL_NS
  ip -n $DUT_NS link set lo up
  ip -n $TOOL_NS link set lo up
  ip -n $DUT_NS addr add $DUT/16 dev plb0
  ip -n $TOOL_NS addr add 10.99.0.2/16 dev plb1
  peers "$1" "$2" | sed 's/.*/addr add &\/32 dev plb1/' | ip -n $TOOL_NS -batch -
  ip -n $DUT_NS link set plb0 up
  ip -n $TOOL_NS link set plb1 up
}
peers() {  # senders, receivers: the neighbors' addresses, that of the late joiner last
  for ((i = 1; i <= $1; i++)); do echo 10.99.1.$i; done
  for ((i = 1; i <= $2 + 1; i++)); do echo 10.99.2.$i; done
}
in_dut() { ip netns exec $DUT_NS "$@"; }
wait_listening() {  # until the daemon listens on TCP port 179
  for ((k = 0; k < 100; k++)); do
    in_dut ss -Hltn 'sport = :179' | grep -q . && return 0
    kill -0 "$PID" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

# A run: peer, senders, receivers, routes, name of the JSON file, phases, options of evpn_load.
one_run() {
  local peer=$1 senders=$2 receivers=$3 routes=$4 file=$5 phases=$6
  shift 6
  net_up "$senders" "$receivers" || return 1
  local rc=1
  if "${peer}_start" "$senders" "$receivers" && wait_listening; then
    ip netns exec $TOOL_NS "$LOAD" --target $DUT --sender-base 10.99.1.1 --receiver-base 10.99.2.1 \
      --senders "$senders" --receivers "$receivers" --total "$routes" --as $AS --peer-as $AS --ip 4 \
      --pid "$PID" --timeout 300 --phases "$phases" --label "$peer" --json "$@" \
      >"$file.part" 2>"$SCRATCH/load.log"
    rc=$?
    if [ -s "$file.part" ]; then mv "$file.part" "$file"; else tail -3 "$SCRATCH/load.log" >&2; fi
  else
    echo "$peer did not start" >&2
    tail -qn 3 "$SCRATCH/$peer"/{out,log,*.out} 2>/dev/null >&2
  fi
  rm -f "$file.part"
  stop_daemon
  net_down
  return $rc
}
