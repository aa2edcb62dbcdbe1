#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what is missing, builds, and runs the tests. The last line is `N passed, N failed, N skipped`
# over all of them; the exit code is not 0 if any failed.
#   ./test.sh        all: unit tests, lab tests, both compilers, fuzz targets for a quarter of a minute each
#   ./test.sh fast   release build, unit tests, format, shell scripts
set -uo pipefail
cd "$(dirname "$0")" || exit 1
case ${1:-} in
  "") full=1 ;;
  fast) full= ;;
  *)
    echo "usage: $0 [fast]" >&2
    exit 2
    ;;
esac
FUZZ_SECONDS=${FUZZ_SECONDS:-15}
passed=0 failed=0 skipped=0 failures=()

section() { printf '\n=== %s (after %d s)\n' "$1" "$SECONDS"; }
pass() { passed=$((passed + 1)) && echo "PASS $1"; }
skip() { skipped=$((skipped + 1)) && echo "SKIP $1"; }
fail() { failed=$((failed + 1)) && failures+=("$1") && echo "FAIL $1"; }
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then pass "$name"; else fail "$name"; fi
}
finish() {
  [ ${#failures[@]} -eq 0 ] || printf '\nfailed: %s\n' "${failures[*]}"
  printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
  [ $failed -eq 0 ]
  exit
}

configure() { # PRESET
  [ -e "build/$1/build.ninja" ] || cmake --preset "$1" >/dev/null
}

run_ctest() { # PRESET, arguments of ctest
  local dir=build/$1 counts
  local file=$dir/ctest.xml
  shift
  rm -f "$file"
  ctest --test-dir "$dir" --output-junit ctest.xml --output-on-failure --timeout 300 -j2 "$@"
  # tests, failures, disabled and skipped stand in the first element
  counts=$(tr '\n\t' '  ' <"$file" 2>/dev/null | sed -n 's/.*<testsuite[^>]* tests="\([0-9]*\)" *failures="\([0-9]*\)" *disabled="\([0-9]*\)" *skipped="\([0-9]*\)".*/\1 \2 \3 \4/p')
  if [ -z "$counts" ]; then
    fail "ctest $*"
    return
  fi
  local all bad disabled skips
  read -r all bad disabled skips <<<"$counts"
  skips=$((skips + disabled))
  passed=$((passed + all - bad - skips)) failed=$((failed + bad)) skipped=$((skipped + skips))
  [ "$bad" -eq 0 ] || failures+=("$bad of ctest")
}

run_fuzz() { # TARGET: one of build/fuzz, for FUZZ_SECONDS
  local program corpora
  program=$(find build/fuzz -type f -executable -name "$1" | head -n 1)
  mapfile -t corpora < <(find tests -type d -path "*/corpus/$1") # only read; what is found new goes to build/
  mkdir -p "build/fuzz/found/$1" "build/fuzz/corpus/$1"
  "$program" -max_total_time="$FUZZ_SECONDS" -timeout=20 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
    -artifact_prefix="build/fuzz/found/$1/" "build/fuzz/corpus/$1" "${corpora[@]}" >"build/fuzz/$1.log" 2>&1
  echo $? >"build/fuzz/$1.exit"
}

section "packages"
if [ $full ]; then groups=(build lab test); else groups=(build); fi
tools/install-deps.sh "${groups[@]}" || {
  fail "installation of packages"
  finish
}

section "release build"
if configure release && cmake --build build/release; then
  pass "release build"
else
  fail "release build"
  finish
fi

section "format and scripts"
if command -v clang-format-19 >/dev/null; then
  check "clang-format" bash -c 'git ls-files "*.cpp" "*.h" "*.c" | xargs clang-format-19 --dry-run -Werror'
else
  skip "clang-format: clang-format-19 is not installed"
fi
if command -v shellcheck >/dev/null; then
  check "shellcheck" bash -c 'git ls-files "*.sh" .ci/run | xargs shellcheck'
else
  skip "shellcheck: not installed"
fi

section "unit tests"
if [ ! $full ]; then
  run_ctest release -L fast
  finish
fi
if [ "$(id -u)" = 0 ]; then
  run_ctest release
else
  run_ctest release -L fast
  skip "tests that need root"
fi

# One build for three purposes: clang-19 finds the code clean, the unit tests run under ASan and UBSan,
# and the fuzz targets are there. It has the lowest priority and runs beside the lab tests, which wait
# for timers more than they compute.
mkdir -p build
(configure fuzz && exec nice -n 19 ninja -C build/fuzz) >build/fuzz-build.log 2>&1 &
clang_build=$!

section "lab tests"
labs=$(mktemp)
trap 'rm -f "$labs"; [ -z "$clang_build" ] || kill "$clang_build" 2>/dev/null' EXIT
/usr/bin/python3 tests/lab/run.py -j 2 | tee "$labs"
read -r p f s < <(sed -n 's/^labs: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 \2 \3/p' "$labs")
if [ -n "${s:-}" ]; then
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  [ "$f" -eq 0 ] || failures+=("$f lab tests")
else
  fail "lab tests: no result"
fi

section "clang-19 build with sanitizers"
wait "$clang_build"
clang_result=$? clang_build=
if [ $clang_result -eq 0 ]; then
  pass "clang-19 build"
else
  grep -A 20 -E 'FAILED|error' build/fuzz-build.log | head -n 100
  fail "clang-19 build"
  finish
fi

section "unit tests under ASan and UBSan"
run_ctest fuzz -L fast

section "fuzz targets, $FUZZ_SECONDS s each, two at a time"
mapfile -t targets < <(ninja -C build/fuzz -t targets all | sed -n 's/^\(fuzz_[A-Za-z0-9_]*\): phony$/\1/p' | sort -u)
if [ ${#targets[@]} -eq 0 ]; then
  fail "no fuzz targets"
else
  for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    run_fuzz "$target" &
  done
  wait
  for target in "${targets[@]}"; do
    if [ "$(cat "build/fuzz/$target.exit")" = 0 ]; then
      pass "$target: $(grep -aoE 'Done [0-9]+ runs' "build/fuzz/$target.log" | tail -n 1)"
    else
      tail -n 40 "build/fuzz/$target.log"
      fail "$target"
    fi
  done
fi
finish
