#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Lists the rows of requirements of an area (tests/rows/AREA.tsv), each with the tests that show it and whether
# they pass; the last line is `rows: N pass, N fail, N not done`. Runs the tests it needs from the release
# build, lab tests too (as root), unless their results are given.
#   tests/rows.sh bgp [--markdown] [--labs FILE] [--check]
# --markdown: writes docs/requirements-AREA.md too. --labs FILE: output of tests/lab/run.py. --check: runs
# nothing and tells which named tests don't exist.
set -u
cd "$(dirname "$0")/.." || exit 1
area=${1:-}
if [ -z "$area" ] || [ ! -e "tests/rows/$area.tsv" ]; then
  echo "usage: tests/rows.sh AREA [--markdown] [--labs FILE] [--check]; areas: $(cd tests/rows && echo *.tsv | sed 's/\.tsv//g')" >&2
  exit 2
fi
exec /usr/bin/python3 tests/rows/rows.py "$@"
