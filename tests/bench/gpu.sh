#!/usr/bin/env bash
# Everything that is to be measured on a GPU, in one command and one report.
#
#   tests/bench/gpu.sh [--only NAME,...] [--out DIR]   on a machine with a GPU: DIR/report.md
#   tests/bench/gpu.sh --list                          the steps: what each shows, what it needs
#   tests/bench/gpu.sh --check [--only NAME,...]       on any machine: the same scripts and programs,
#                                                      small, on the host; says what was left out
#   tests/bench/gpu.sh --pack FILE.tar.gz              what a GPU machine needs that cannot build:
#                                                      unpack it there and run tests/bench/gpu.sh
#
# Each figure stands in the report with its command, device, types, accuracy and a ratio from the
# same run. A step whose needs are missing is in the report too, with the reason. Fails if a step
# failed or, without --check, was left out.
#
# PYTHON (python3) is the interpreter with torch 2.11.0 and the peers; LONGVIEW_VIL names a checkout
# of microsoft/vision-longformer; LONGVIEW_BUILD (build) is where the programs are.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"
. "$ROOT/tests/support/on_device.sh"
PYTHON=${PYTHON:-python3}
BUILD=${LONGVIEW_BUILD:-$ROOT/build}
BIN=$BUILD/bin
BENCH=$ROOT/tests/bench
. "$BENCH/report.sh"
. "$BENCH/gpu_steps.sh"

mode=measure
only=
out=gpu-report
while [ $# -gt 0 ]; do
  case $1 in
    --list) mode=list ;;
    --check) mode=check ;;
    --only) only=${2:?--only needs names}; shift ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --pack) mode=pack; packed=${2:?--pack needs a file}; shift ;;
    --help | -h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift
done

choose_steps "$only"

# What only a device has is no need of a check.
unneeded() {
  case $mode,$1 in check,sanitizer | check,cuda-torch | check,bin:longview_cuda.so) return 0 ;; esac
  return 1
}

# Prints why need $1 is not met, if it is not.
unmet() {
  case $1 in
    bin:*) [ -e "$BIN/${1#bin:}" ] || echo "$BIN/${1#bin:} is not built" ;;
    py:*) "$PYTHON" -c "import ${1#py:}" 2>/dev/null || echo "$PYTHON has no ${1#py:}" ;;
    vil) [ -d "${LONGVIEW_VIL:-}/src/models" ] || echo "LONGVIEW_VIL names no checkout of vision-longformer" ;;
    ghz) PATH=$DEPS_DIR/bin:$PATH command -v ghz >/dev/null || echo "there is no ghz on the path" ;;
    sanitizer) [ -n "$(compute_sanitizer)" ] || echo "there is no compute-sanitizer" ;;
    cuda-torch)
      "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
        echo "the torch of $PYTHON sees no CUDA device" ;;
  esac
}

# The library behind a model's products on a device: torch as the peers use it is the same build.
use_python_torch() {
  local folders
  folders=$("$PYTHON" - <<'PY' 2>/dev/null || true
import glob, os, torch
lib = os.path.join(os.path.dirname(torch.__file__), "lib")
print(":".join([lib, *glob.glob(os.path.join(lib, "../../nvidia/*/lib"))]))
PY
  )
  export LD_LIBRARY_PATH=$ROOT/lib${folders:+:$folders}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

write_head() {
  {
    echo "# On a GPU"
    echo
    echo "* device: $(device_name)"
    echo "* host: $(cd "$BENCH" && "$PYTHON" -c 'import timing; print(timing.machine())')"
    echo "* python: $(cd "$BENCH" && "$PYTHON" -c 'import timing
print(timing.versions("torch", "triton", "transformers", "timm"))')"
    echo "* project: $(cat "$ROOT/VERSION" 2>/dev/null || git -C "$ROOT" describe --always --dirty)"
    echo "* when: $(date -u +%FT%TZ)"
    echo
  } >"$report"
}

case $mode in
  list)
    list_steps ;;
  check)
    report=$(mktemp)
    trap 'rm -f "$report"' EXIT
    [ ! -d "$ROOT/lib" ] || use_python_torch
    reason=$(no_device)
    say "Checking without a device${reason:+ ($reason)}: results of small cases, no figures"
    run_steps ;;
  measure)
    reason=$(no_device)
    [ -z "$reason" ] || die "nothing to measure on: $reason (--check runs anywhere)"
    mkdir -p "$out"
    report=$(cd "$out" && pwd)/report.md
    use_python_torch
    write_head
    status=0
    run_steps || status=$?
    say "$report written"
    exit $status ;;
  pack) . "$BENCH/gpu_pack.sh" && pack "$packed" ;;
esac
