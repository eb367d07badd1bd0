#!/usr/bin/env bash
# Everything that is to be measured on a CPU with AMX (or VNNI), in one command and one report.
#
#   tests/bench/amx.sh [--only NAME,...] [--out DIR]   DIR/report.md, beside peers in the same run
#   tests/bench/amx.sh --list                          the steps: what each shows, what it needs
#   tests/bench/amx.sh --check [--only NAME,...]       the same scripts and programs, small; says what
#                                                      was left out
#
# Each figure stands in the report with its command, machine, types, accuracy and a ratio from the
# same run. It measures on any CPU and says which instructions it found: what this project's README
# has of AMX is older than int8. A step whose needs are missing is in the report too, with the
# reason. Fails if a step failed or, without --check, was left out.
#
# PYTHON (python3) is the interpreter with the peers (tests/bench/document_peers.py says which);
# LONGVIEW_BUILD (build) is where the programs are.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"
PYTHON=${PYTHON:-python3}
BIN=${LONGVIEW_BUILD:-$ROOT/build}/bin
BENCH=$ROOT/tests/bench
. "$BENCH/report.sh"

mode=measure
only=
out=amx-report
while [ $# -gt 0 ]; do
  case $1 in
    --list) mode=list ;;
    --check) mode=check ;;
    --only) only=${2:?--only needs names}; shift ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --help | -h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
  shift
done

# Every need is one of a check too.
unneeded() { return 1; }

# Prints why need $1 is not met, if it is not.
unmet() {
  case $1 in
    bin:*) [ -e "$BIN/${1#bin:}" ] || echo "$BIN/${1#bin:} is not built" ;;
    py:*) "$PYTHON" -c "import ${1#py:}" 2>/dev/null || echo "$PYTHON has no ${1#py:}" ;;
  esac
}

# Instruction sets that products and attention choose among.
instructions() {
  grep -oE '\b(avx2|avx512f|avx512_bf16|avx512_vnni|avx_vnni|amx_bf16|amx_int8)\b' /proc/cpuinfo |
    sort -u | paste -sd' ' -
}
# bf16 where the CPU multiplies it natively: elsewhere models compute in fp32 all the same.
types() { if instructions | grep -qE 'avx512_bf16|amx_bf16'; then echo "$1"; else echo "$2"; fi; }

PRODUCTS="kernels_dense_test dense_linear_test dense_int8_linear_test kernels_span_test"
step tests "bin:kernels_dense_test bin:dense_linear_test bin:dense_int8_linear_test bin:kernels_span_test" \
  "products and attention of this CPU's instructions: right, and the same bits in any batch"
each_test() {
  local test status=0
  for test in $PRODUCTS; do measured "$BIN/$test" --gtest_brief=1 || status=1; done
  return $status
}
measure_tests() { each_test; }
check_tests() { each_test; }

step linears "bin:longformer_bench" "Longformer-base taken apart, and the rate of a product, by type"
measure_linears() {
  measured "$BIN/longformer_bench" --tokens=128,512,4096 --dtypes="fp32$(types ,bf16 ''),int8"
}
check_linears() { measured "$BIN/longformer_bench" --tokens=64 --dtypes=fp32,int8 --repeats=1; }

# $1: model, $2: lengths; the rest goes to the script.
documents() {
  local model=$1 lengths=$2
  shift 2
  measured "$PYTHON" -W ignore "$BENCH/document_peers.py" --model "$model" --lengths "$lengths" \
    --dtypes "$(types bf16 fp32),int8" --peers "hf:$(types bf16 fp32),openvino:$(types bf16 fp32),openvino:int8" "$@"
}
step documents "bin:model_pipe py:torch py:transformers py:openvino py:nncf" \
  "BERT-base, bge-m3's shape, ModernBERT and Longformer beside HuggingFace and OpenVINO, int8 beside int8"
measure_documents() {
  local status=0
  documents bge-base 128,512 || status=1
  documents bge-m3 512 || status=1
  documents modernbert-base 512,4096 || status=1
  documents longformer-base 512,4096 || status=1
  return $status
}
check_documents() { documents bge-base 64 --layers 1 --repeats 1; }

step decode "bin:lm_decode_bench" "decoding 32K tokens deep, projected against full cache"
measure_decode() {
  measured "$BIN/lm_decode_bench" --context=32768 --batch=1,8 --dtypes="$(types bf16 fp32)" &&
    measured "$BIN/lm_decode_bench" --context=2048 --batch=1 --dtypes="$(types bf16 fp32),int8" --full=false
}
check_decode() {
  measured "$BIN/lm_decode_bench" --context=256 --batch=1 --dtypes=fp32,int8 --layers=1 --full=false
}

step open-loop "bin:longview-server bin:longview bin:model_pipe" \
  "the server's throughput under Poisson arrivals beside the same model in an offline loop"
measure_open_loop() { measured "$PYTHON" "$BENCH/open_loop.py" --device cpu --seconds 20; }
check_open_loop() { measured "$PYTHON" "$BENCH/open_loop.py" --check; }

choose_steps "$only"
case $mode in
  list) list_steps ;;
  check)
    report=$(mktemp)
    trap 'rm -f "$report"' EXIT
    say "Checking: results of small cases, no figures"
    run_steps ;;
  measure)
    mkdir -p "$out"
    report=$(cd "$out" && pwd)/report.md
    {
      echo "# On a CPU"
      echo
      echo "* machine: $(cd "$BENCH" && "$PYTHON" -c 'import timing; print(timing.machine())')"
      echo "* instructions: $(instructions)"
      echo "* python: $(cd "$BENCH" && "$PYTHON" -c 'import timing
print(timing.versions("torch", "transformers", "openvino", "nncf"))')"
      echo "* project: $(git -C "$ROOT" describe --always --dirty)"
      echo "* when: $(date -u +%FT%TZ)"
      echo
    } >"$report"
    status=0
    run_steps || status=$?
    say "$report written"
    exit $status ;;
esac
