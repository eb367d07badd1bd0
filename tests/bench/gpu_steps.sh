# shellcheck shell=bash disable=SC2046  # Lists of programs are split into words.
# The steps of gpu.sh: for each what it shows and needs, how it is measured on a device, and how it is
# checked without one. Source it; `measured` runs a command into the report.

# Every program of a list; fails if one did.
each_on_device() {
  local test status=0
  for test in "$@"; do measured run_on_device "$test" || status=1; done
  return $status
}

# Without a device these programs run in the default tests, on the host's stand-in.
check_listed() {
  local test
  for test in "$@"; do
    [ "$("$test" --gtest_list_tests | grep -c '^  ')" -gt 0 ] || { note "$test lists no test"; return 1; }
    note "$(basename "$test"): run by the default tests on the host as a stand-in"
  done
}

device_tests() {
  kernel_device_tests "$BIN"
  model_device_tests "$BIN"
}

step tests "bin:kernels_cuda_span_test bin:transformer_ls_device_test" \
  "goldens and hostile shapes on the device, by element type"
measure_tests() { each_on_device $(device_tests); }
check_tests() { check_listed $(device_tests); }

step sanitize "bin:kernels_cuda_span_test sanitizer" \
  "compute-sanitizer: memcheck, racecheck, synccheck, initcheck over kernels and models"
measure_sanitize() { measured sanitize_device_tests "$BIN" "$out"; }
check_sanitize() { note "of $(device_tests | wc -l) programs nothing runs without a device"; }

BITS='*BatchInvariance*:*BatchMates*:*SequenceAlone*:*PropertyOfTheDocument*:*AloneAndTogether*:*AloneAndAmong*'
BITS+=':*SameBits*:*InParts*:*LikeAFresh*'
# Programs with a test of that name.
bits_tests() {
  local test
  for test in $(device_tests); do
    if "$test" --gtest_list_tests --gtest_filter="$BITS" | grep -q '^  '; then echo "$test"; fi
  done
}
step bits "bin:kernels_cuda_span_test" "equal bits alone and in any batch"
measure_bits() {
  local test status=0
  for test in $(bits_tests); do measured run_on_device "$test" --gtest_filter="$BITS" || status=1; done
  return $status
}
check_bits() { check_listed $(bits_tests); }

step band "bin:longview_cuda_bench.so bin:longview_cuda.so py:torch cuda-torch" \
  "banded attention, 4,096 and 16,384 tokens, beside FlexAttention, SDPA with a mask, dense flash"
measure_band() {
  measured "$PYTHON" "$BENCH/cuda_attention_peers.py" --dtype bf16 &&
    measured "$PYTHON" "$BENCH/cuda_attention_peers.py" --dtype fp16
}
check_band() { measured "$PYTHON" -W ignore "$BENCH/cuda_attention_peers.py" --check; }

step keys "bin:longview_cuda_bench.so bin:longview_cuda.so py:torch cuda-torch" \
  "attention of decode steps, projected against full cache, beside SDPA and the copy rate"
measure_keys() { measured "$PYTHON" "$BENCH/cuda_attention_peers.py" --decode; }
check_keys() { measured "$PYTHON" -W ignore "$BENCH/cuda_attention_peers.py" --check --decode; }

step longformer "bin:model_pipe bin:longview_cuda.so py:torch py:transformers cuda-torch" \
  "Longformer-base, 4,096 tokens, batch 1 and 8, beside HuggingFace eager and compiled, GEMM share"
measure_longformer() { measured "$PYTHON" "$BENCH/longformer_cuda_peers.py" --batches 1,8 --length 4096; }
check_longformer() { measured "$PYTHON" -W ignore "$BENCH/longformer_cuda_peers.py" --check; }

step decode "bin:cuda_decode_bench bin:longview_cuda.so" \
  "decoding, full against projected cache, 8K to 128K, batch 1, 8, 32, share of the copy rate"
measure_decode() {
  measured "$BIN/cuda_decode_bench" --context=8192,32768,131072 --batch=1,8,32 --dtypes=bf16,fp16
}
check_decode() { measured "$BIN/cuda_decode_bench" --check=true; }

step vision "bin:model_pipe bin:longview_cuda.so vil py:torch py:torchvision py:timm py:einops py:scipy cuda-torch" \
  "ViL-Small, 384 and 1024 pixels a side, beside its authors' code and ViT-S"
measure_vision() {
  measured "$PYTHON" "$BENCH/vision_cuda_peers.py" --models small --sizes 384,1024 --batches 1,8
}
check_vision() { measured "$PYTHON" -W ignore "$BENCH/vision_cuda_peers.py" --check; }

# The server with the document classifier under deploy/load. $1: --device, $2: the folder of its
# report; the rest goes to run.py.
serve_load() {
  local device=$1 out=$2 folder server status=0
  shift 2
  folder=$(mktemp -d)
  "$BIN/longview-server" --device="$device" --grpc_port=0 --http_port=0 --max_queue_seconds=5 \
    "$ROOT/models/zoo/code-language" >"$folder/ready" 2>"$folder/log" &
  server=$!
  until grep -q '^longview ready' "$folder/ready"; do
    kill -0 $server 2>/dev/null || { cat "$folder/log"; rm -rf "$folder"; return 1; }
    sleep 0.2
  done
  "$PYTHON" "$ROOT/deploy/load/run.py" --out "$out" "$@" \
    --server "localhost:$(sed -n 's/.*grpc=\([0-9]*\).*/\1/p' "$folder/ready")" \
    --http "localhost:$(sed -n 's/.*http=\([0-9]*\).*/\1/p' "$folder/ready")" || status=$?
  kill -INT $server
  wait $server || status=$?
  rm -rf "$folder"
  return $status
}

step load "bin:longview-server bin:longview bin:longview_cuda.so ghz" \
  "the server under ghz: utilisation, p50 and p99, arrivals up to three times its peak"
measure_load() {
  measured serve_load cuda:0 "$out/load" --gpu 0 --seconds 20 --only get_model \
    --outstanding 1,4,16,64 && measured cat "$out/load/report.md"
}
check_load() {
  local folder status=0
  folder=$(mktemp -d)
  measured serve_load cpu "$folder" --seconds 0.5 --only get_model --outstanding 2 || status=$?
  rm -rf "$folder"
  return $status
}

step open-loop "bin:longview-server bin:longview bin:model_pipe bin:longview_cuda.so" \
  "the server's throughput under Poisson arrivals beside the same model in an offline loop"
measure_open_loop() { measured "$PYTHON" "$BENCH/open_loop.py" --device cuda:0 --seconds 20; }
check_open_loop() { measured "$PYTHON" "$BENCH/open_loop.py" --check; }
