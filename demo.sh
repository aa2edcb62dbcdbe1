#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what is missing, builds, and runs an Internet exchange in network namespaces: first with
# plain VXLAN flooding, then with peerlan, under the same workload. Needs root and Debian 12.
#   ./demo.sh          takes everything down at the end, also when interrupted
#   ./demo.sh --keep   leaves the exchange up and says how to explore it
set -euo pipefail
cd "$(dirname "$0")"
case ${1:-} in
  "" | --keep) ;;
  *)
    echo "usage: $0 [--keep]" >&2
    exit 2
    ;;
esac
if [ "$(id -u)" != 0 ]; then
  echo "demo.sh makes network namespaces and loads eBPF programs: run it as root" >&2
  exit 1
fi

tools/install-deps.sh build lab
[ -e build/release/build.ninja ] || cmake --preset release
cmake --build build/release --target peerland peerlan peerlan-frames
exec /usr/bin/python3 lab/demo.py "$@"
