// The device's attention for cuda_attention_peers.py, which loads this as a library into the
// process of its peers and hands over their tensors. Plain C, for ctypes.
//
// One thread. Errors are texts; a null is success.
#pragma once

#include <cstdint>

namespace longview::kernels::cuda {
extern "C" {

// Loads the plugin at `path` for CUDA's device 0. Null: the host stands in for a device; tensors
// are the host's and nothing is timed.
const char* lv_open(const char* path);

// Plans a band of `window` keys to either side over documents of `tokens` rows, `heads` heads of
// `dim` columns, and takes the memory it needs. dtype: 1 bfloat16, 2 float16.
const char* lv_plan_band(int32_t documents, int32_t tokens, int32_t heads, int32_t dim,
                         int32_t window, int32_t dtype);

// Decode: one query each of `sequences` that have read `tokens`, over blocks of `keys` in all: the
// last `window` and, if `segment` > 0, one projected key per segment of the rest.
const char* lv_plan_decode(int32_t sequences, int32_t tokens, int32_t heads, int32_t dim,
                           int32_t window, int32_t segment, int32_t dtype);

// Runs the plan `times` times on device tensors [rows, heads, dim] and waits; *milliseconds is of
// all of them, by events, and 0 where the host stands in. A decode plan reads keys and values as
// blocks: k and v are [blocks, heads, 64, dim], blocks in the order of the sequences, a sequence's
// pages before its window.
const char* lv_run(const void* q, const void* k, const void* v, void* out, int32_t times,
                   float* milliseconds);

// Query-key pairs of all heads that the plan asks for, and those it computes.
int64_t lv_useful_pairs();
int64_t lv_executed_pairs();

// Blocks of 64 keys that a decode plan reads in all.
int64_t lv_blocks();
}  // extern "C"
}  // namespace longview::kernels::cuda
