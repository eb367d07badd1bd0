#!/usr/bin/env bash
# Lets libFuzzer search on every target for a while. Inputs that break one are left in
# build-fuzz/findings/; a fixed one belongs into tests/fuzz/corpus/<target>/.
#
#   tests/fuzz/run.sh SECONDS REPORT.xml [TARGET...]
#
# Needs: cmake --preset fuzz && cmake --build --preset fuzz
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"
cd "$ROOT"

seconds=$1
report=$2
shift 2
if [ $# -eq 0 ]; then
  mapfile -t targets < <(ls tests/fuzz/corpus)
  set -- "${targets[@]}"
fi
mkdir -p build-fuzz/findings

printf '<testsuite name="fuzz">\n' >"$report"
for target in "$@"; do
  say "fuzz_$target, $seconds s"
  # Inputs found on the way stay in the build folder and are the start of the next run.
  corpus=build-fuzz/corpus/$target
  mkdir -p "$corpus"
  dictionary=()
  [ ! -f "tests/fuzz/$target.dict" ] || dictionary=("-dict=tests/fuzz/$target.dict")
  printf '<testcase classname="fuzz" name="%s">' "$target" >>"$report"
  build-fuzz/bin/fuzz_"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
    -print_final_stats=1 -artifact_prefix="build-fuzz/findings/$target-" \
    ${dictionary[@]+"${dictionary[@]}"} "$corpus" "tests/fuzz/corpus/$target" \
    >"build-fuzz/findings/$target.log" 2>&1 || {
    tail -n 30 "build-fuzz/findings/$target.log" >&2
    printf '<failure/>' >>"$report"
  }
  grep -E "^(stat::number_of_executed_units|Done)" "build-fuzz/findings/$target.log" >&2 || true
  printf '</testcase>\n' >>"$report"
done
printf '</testsuite>\n' >>"$report"
