#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the Debian packages that are missing, by groups: build, lab, test. No group: all.
# Does nothing, and needs no root, where all are there.
set -euo pipefail

packages() {
  case $1 in
    build)
      echo build-essential cmake ninja-build ccache pkg-config bpftool git python3 \
        libspdlog-dev libfmt-dev libyaml-cpp-dev libcli11-dev libnl-3-dev libnl-route-3-dev \
        libpcap-dev libbpf-dev libsystemd-dev prometheus-cpp-dev libgtest-dev libgmock-dev librapidcheck-dev
      # Debian 12 has two releases of Boost and several of clang, which compiles the eBPF programs; of
      # later releases the default ones are new enough.
      if grep -q '^VERSION_ID="12"' /etc/os-release; then
        echo libboost1.81-dev libboost-json1.81-dev clang-19
      else
        echo libboost-dev libboost-json-dev clang
      fi
      ;;
    lab) echo iproute2 util-linux procps iputils-ping ethtool frr gobgpd python3 python3-yaml ;;
    test) echo clang-19 libclang-rt-19-dev clang-format-19 shellcheck exabgp bird2 tshark tcpdump ;;
    *)
      echo "usage: $0 [build] [lab] [test]" >&2
      exit 2
      ;;
  esac
}

[ $# -gt 0 ] || set -- build lab test
wanted=
for group; do wanted+=" $(packages "$group")"; done
# shellcheck disable=SC2086  # words on purpose
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || true)
missing=()
for package in $wanted; do
  grep -qx "installed $package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "Installing: ${missing[*]}"
if [ "$(id -u)" != 0 ]; then
  echo "This needs root: apt-get install ${missing[*]}" >&2
  exit 1
fi
# The daemons of the lab's peers (FRRouting, GoBGP, ...) must not start on this machine itself.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
