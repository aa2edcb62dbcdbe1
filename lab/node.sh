#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Entrypoint of a lab node, in the container image as in the namespace runner, where it is also
# there as the command `peerlan-node`.
#   (no argument)            wait until the topology's exec lines are done, start what has settings, stay
#   start peerland|frr|gobgp start one of them again, for example after a kill -9
#   pid peerland             the pid of the daemon, if it runs
# A daemon runs if its settings are there: /etc/peerlan/peerland.yaml, /etc/frr/frr.conf,
# /etc/gobgp/gobgpd.yaml.
set -u

start_peerland() {
  mkdir -p /run/peerlan
  # shellcheck disable=SC2086  # words on purpose
  ${PEERLAN_WRAPPER:-} peerland --config /etc/peerlan/peerland.yaml </dev/null >>/proc/1/fd/9 2>&1 &
  echo $! >/run/peerland.pid
}

start_frr() {
  local daemon enabled options
  install -d -o frr -g frr -m 0755 /run/frr /var/tmp/frr
  [ -e /etc/frr/vtysh.conf ] || : >/etc/frr/vtysh.conf
  # shellcheck disable=SC1091
  [ -e /etc/frr/daemons ] && . /etc/frr/daemons
  for daemon in zebra staticd bgpd; do
    enabled=$daemon
    options=${daemon}_options
    [ "$daemon" = zebra ] || [ "${!enabled:-no}" = yes ] || continue
    # shellcheck disable=SC2086  # the options are several words
    /usr/lib/frr/$daemon -d --vty_port 0 --log file:/run/frr/$daemon.log ${!options:-} || return 1
  done
  vtysh -b
}

start_gobgp() {
  gobgpd -t yaml -f /etc/gobgp/gobgpd.yaml --api-hosts 127.0.0.1:50051 </dev/null >>/proc/1/fd/9 2>&1 &
  echo $! >/run/gobgpd.pid
}

case ${1:-} in
  start) "start_$2" ;;
  pid)
    read -r pid <"/run/$2.pid" && [ "$(cat "/proc/$pid/comm")" = "$2" ] && echo "$pid"
    ;;
  "")
    trap 'kill -TERM -- -1; exit 0' TERM INT
    # Where daemons log. Not 1, which is another file while this shell redirects a builtin.
    exec 9>&1
    # In a container the sysfs has no bpffs of its own yet.
    if [ "$(stat -f -c %T /sys/fs/bpf 2>/dev/null)" != bpf_fs ]; then
      mount -t bpf bpf /sys/fs/bpf
    fi
    # The last exec line of each node is: touch /run/node-ready
    until [ -e /run/node-ready ]; do sleep 0.05; done
    if command -v ethtool >/dev/null; then # the namespace runner has done it already
      for link in /sys/class/net/*; do ethtool -K "${link##*/}" tx off >/dev/null 2>&1; done
    fi
    [ -e /etc/frr/frr.conf ] && start_frr
    [ -e /etc/peerlan/peerland.yaml ] && start_peerland
    [ -e /etc/gobgp/gobgpd.yaml ] && start_gobgp
    while :; do
      sleep infinity &
      wait $!
    done
    ;;
  *)
    echo "usage: peerlan-node [start peerland|frr|gobgp] [pid peerland]" >&2
    exit 2
    ;;
esac
