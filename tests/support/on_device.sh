# shellcheck shell=bash
# Shared by what runs on a CUDA device: is there one, which, and which tests have a part for it.
# Source it behind deploy/lib.sh.

# Why nothing can run on a device here; nothing where something can.
no_device() {
  if ! command -v nvidia-smi >/dev/null; then
    echo "there is no nvidia-smi on the path"
  elif ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    echo "nvidia-smi sees no GPU"
  fi
}

# One line about the first device.
device_name() {
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit \
    --format=csv,noheader | head -n 1
}

# The program, or nothing: a toolkit need not be on the path.
compute_sanitizer() {
  local place
  for place in "$(command -v compute-sanitizer)" "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer"; do
    if [ -x "$place" ]; then
      echo "$place"
      return
    fi
  done
}

# Test programs below the folder $1 that also run on a device where there is one: kernels, then
# models.
kernel_device_tests() {
  ls "$1"/kernels_cuda_*_test "$1"/kernels_span_test "$1"/kernels_golden_test 2>/dev/null
}
model_device_tests() {
  find "$1" -maxdepth 1 \( -name '*_device_test' -o -name '*_device_*_test' -o \
    -name generation_decoder_batch_invariance_test \) ! -name 'kernels_*' | sort
}

# Runs a test program with its arguments; also fails where it left the device out.
run_on_device() {
  local output status=0
  output=$(mktemp)
  "$@" --gtest_brief=1 >"$output" 2>&1 || status=$?
  cat "$output"
  if grep -q 'not run on CUDA' "$output"; then status=1; fi
  rm -f "$output"
  return $status
}

# compute-sanitizer's four tools over the device tests in the folder $1. What gtest saw goes to the
# folder $2. Fails if any tool found something.
sanitize_device_tests() {
  local bin=$1 results=$2 sanitizer tool test failed=0
  sanitizer=$(compute_sanitizer)
  for tool in memcheck racecheck synccheck initcheck; do
    for test in $(kernel_device_tests "$bin") $(model_device_tests "$bin"); do
      say "$tool $(basename "$test")"
      run_on_device "$sanitizer" --tool "$tool" --error-exitcode 1 "$test" \
        --gtest_output="xml:$results/cuda-$tool-$(basename "$test").xml" || failed=1
    done
  done
  return $failed
}
