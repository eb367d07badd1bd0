#!/usr/bin/env bash
# Installs, builds and runs the default test suite. Last line: "N passed, N failed".
#
#   tests/run.sh [--slow] [--sanitize]
#
# Default: unit and parity tests (GoogleTest), structure checks, the scheduler under
# ThreadSanitizer, and the black-box suite against the real server with real clients.
# --slow      also the tests marked slow (long soak, fuzz with more rounds).
# --sanitize  also everything in C++ under AddressSanitizer and UBSan.
# LONGVIEW_GOLDEN=DIR runs the parity tests on other fixtures of the same shape.
set -euo pipefail
. "$(dirname "$0")/../deploy/lib.sh"
cd "$ROOT"

slow=false
sanitize=false
for argument in "$@"; do
  case $argument in
    --slow) slow=true ;;
    --sanitize) sanitize=true ;;
    *) die "unknown argument '$argument'; see the head of tests/run.sh" ;;
  esac
done

deploy/install_deps.sh
tests/support/install_clients.sh

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
jobs=$(nproc)

say "Building everything (release)"
cmake --preset release -DLONGVIEW_WERROR=ON >"$results/configure.log" || { cat "$results/configure.log" >&2; exit 1; }
cmake --build build -j "$jobs" -- -k 0
say "Building the scheduler under ThreadSanitizer"
cmake --preset tsan >"$results/configure.log" || { cat "$results/configure.log" >&2; exit 1; }
cmake --build build-tsan -j "$jobs"

# Runs ctest in a build folder; failures are counted at the end, not here.
run_ctest() {
  local build=$1 name=$2
  say "C++ tests ($name)"
  local exclude=()
  $slow || exclude=(-LE slow)
  ctest --test-dir "$build" -j "$jobs" --output-on-failure ${exclude[@]+"${exclude[@]}"} \
    --output-junit "$results/ctest-$name.xml" --no-tests=error | tail -n 40 || true
}
run_ctest build release
run_ctest build-tsan tsan
if $sanitize; then
  say "Building everything under AddressSanitizer and UBSan"
  cmake --preset asan >/dev/null
  cmake --build build-asan -j "$jobs"
  run_ctest build-asan asan
fi

say "Black-box and Python tests"
marks=()
$slow || marks=(-m "not slow")
PATH="$DEPS_DIR/bin:$PATH" "$DEPS_DIR/clients/bin/python" -m pytest tests -q --durations=10 \
  ${marks[@]+"${marks[@]}"} --junitxml "$results/pytest.xml" || true

python3 tests/support/summary.py "$results"/ctest-*.xml "$results/pytest.xml"
