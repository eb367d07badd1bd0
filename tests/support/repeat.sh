#!/usr/bin/env bash
# Runs C++ test programs many times, each time in another order, and prints a table: how often each
# passed, how often it failed, and the seconds of a pass.
#
#   tests/support/repeat.sh [-n TIMES] [-b LOOPS] [PROGRAM...]
#
# -n TIMES   passes of each program (100)
# -b LOOPS   busy loops that compete for the cores meanwhile (0)
# PROGRAM    names in build/bin, or in $LONGVIEW_BIN; all of tests/server and tests/client if none is given
#
# A pass that a crash or a hang prevents counts as failed. The output of what failed is kept, and
# named below the table. Ends with 1 if anything failed.
set -euo pipefail
cd "$(dirname "$0")/../.."

die() { echo "${0##*/}: $*" >&2; exit 2; }

times=100
busy=0
while getopts n:b: option; do
  case $option in
    n) times=$OPTARG ;;
    b) busy=$OPTARG ;;
    *) die "see the head of tests/support/repeat.sh" ;;
  esac
done
shift $((OPTIND - 1))
if [ $# = 0 ]; then
  mapfile -t names < <(grep -rhoP --include=CMakeLists.txt 'add_executable\(\K\w+' tests/server tests/client | sort)
  set -- "${names[@]}"
fi
bin=${LONGVIEW_BIN:-build/bin}

loops=()
logs=$(mktemp -d)
end() {
  [ ${#loops[@]} = 0 ] || kill "${loops[@]}"
  rmdir "$logs" 2>/dev/null || true
}
trap end EXIT
for ((i = 0; i < busy; ++i)); do
  while :; do :; done &
  loops+=($!)
done

failed=""
printf '%-24s %7s %7s %15s\n' program passed failed "seconds a pass"
for name in "$@"; do
  [ -x "$bin/$name" ] || die "there is no $bin/$name; build it first"
  log=$logs/$name.log
  start=$(date +%s%N)
  timeout $((60 + 60 * times)) "$bin/$name" --gtest_shuffle --gtest_repeat="$times" --gtest_brief=1 \
    --gtest_color=no >"$log" 2>&1 || true
  milliseconds=$((($(date +%s%N) - start) / 1000000 / times))
  # Every pass that comes to its end says how many tests ran, and then whether some failed.
  ended=$(grep -c '^\[==========\] .* ran\.' "$log" || true)
  bad=$(grep -c '^\[  FAILED  \] .* listed below:$' "$log" || true)
  passed=$((ended - bad))
  printf '%-24s %7d %7d %11d.%03d\n' "$name" "$passed" $((times - passed)) \
    $((milliseconds / 1000)) $((milliseconds % 1000))
  if [ "$passed" = "$times" ]; then
    rm "$log"
  else
    failed+=$'\n'"$log"
  fi
done
[ -z "$failed" ] || { echo "Output of what failed:$failed"; exit 1; }
