// config.json of a Transformer-LS language model directory (TransformerLSForCausalLM): the
// hyper-parameters of the published code (Zhu et al. 2021, `autoregressive/`) by its names.
// There is no HuggingFace class. Keys that nobody knows are refused, and so is every value that the
// formulas below do not cover.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/span/schedule_planner.h"
#include "models/config/common_config.h"
#include "models/dense/rowwise.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// Entries that a token sees beside its window.
enum class LsSchedule {
  kPaper,   // Every finished segment, averaged after projection; nothing before the text.
  kBlocks,  // The published code's: blocks of B tokens with M tokens of memory.
};

struct LsLmConfig {
  int vocab = 0;         // V
  int width = 0;         // d, even
  int heads = 0;         // h
  int intermediate = 0;  // f
  int layers = 0;        // L
  int window = 0;        // w: keys of a token, itself included; at least `segment`.
  int segment = 0;       // l, chunk_size
  int rank = 0;          // r, chunk_rank: projected keys per finished segment and head
  bool biases = false;   // use_bias: of the four projections
  bool pre_norm = false;
  Activation activation = Activation::kGelu;  // use_gelu: erf form, else ReLU
  int clamp_distance = 0;                     // clamp_len: window distances end here; 0 = off
  int clamp_segments = 0;                     // cpos_clamp_len: segment ids likewise

  LsSchedule schedule = LsSchedule::kPaper;
  // kBlocks only:
  int block = 0;             // B, a multiple of l
  int memory = 0;            // M, a multiple of l, at least w
  bool zero_memory = false;  // Places before the text are attended, as zero inputs.

  bool exact_frequencies = false;  // inv_freq: "exact" ignores the file's tensor.

  int head_dim() const { return width / heads; }
  // Whether segments have a second form, averaged before projection.
  bool early() const { return schedule == LsSchedule::kBlocks; }
  int columns() const { return heads * rank; }  // Columns of dconv_1: head a, rank k at a * r + k.
  kernels::SchedulePattern pattern() const;
  // A grant of prefill is a multiple of it: whole segments and whole 64-slot blocks.
  int prefill_alignment() const;
};

// `common` is what the shared reader made of the same object. INVALID_ARGUMENT begins with
// `origin` and names key, value and what is possible. `tokenizer` is not looked into
// (models/text/byte_codec.h).
absl::StatusOr<LsLmConfig> ParseLsLmConfig(const nlohmann::json& json, const CommonConfig& common,
                                           const std::string& origin);

std::span<const std::string_view> LsLmArchitectures();

}  // namespace longview::models
