#include "models/transformer_ls/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"
#include "models/config/json_reader.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 1> kArchitectures = {"TransformerLSForCausalLM"};

constexpr std::string_view kKnownKeys[] = {
    "model_type", "architectures", "vocab_size",   "d_model",     "n_head",
    "d_inner",    "n_layer",       "window_len",   "chunk_size",  "chunk_rank",
    "use_bias",   "pre_ln",        "use_gelu",     "clamp_len",   "cpos_clamp_len",
    "schedule",   "block_len",     "mem_len",      "zero_memory", "inv_freq",
    "tokenizer",  "bos_token_id",  "eos_token_id", "torch_dtype", "transformers_version",
    "dtype"};

// Prefill is granted in multiples of the alignment, so that must stay a length a step can take.
constexpr int kLargestPrefillAlignment = 1 << 20;

void RefuseUnknownKeys(const json& value, JsonReader& reader) {
  for (const auto& [key, unused] : value.items()) {
    const bool known =
        std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key) != std::end(kKnownKeys);
    if (!known && !key.starts_with('_')) {
      return reader.Refuse(key, "only keys of a Transformer-LS language model");
    }
  }
}

void ReadSizes(JsonReader& reader, LsLmConfig& config) {
  const auto read = [&](std::string_view key, int64_t max) {
    return static_cast<int>(reader.Int(key, 1, max));
  };
  config.vocab = read("vocab_size", 1 << 24);
  config.width = read("d_model", 1 << 16);
  config.heads = read("n_head", 1024);
  config.intermediate = read("d_inner", 1 << 20);
  config.layers = read("n_layer", 1024);
  config.window = read("window_len", 1 << 20);
  config.segment = read("chunk_size", 1 << 16);
  config.rank = read("chunk_rank", 1024);
  if (!reader.status().ok()) return;
  if (config.width % 2 != 0) reader.Refuse("d_model", "an even number");
  if (config.width % config.heads != 0) {
    reader.Refuse("d_model", absl::StrCat("a multiple of n_head, ", config.heads));
  }
  if (config.width / config.heads > kernels::kMaxHeadDim) {
    reader.Refuse("n_head", absl::StrCat("heads of at most ", kernels::kMaxHeadDim, " channels"));
  }
  if (config.window < config.segment) {
    reader.Refuse("window_len", absl::StrCat("at least chunk_size, ", config.segment));
  }
}

int ReadClamp(JsonReader& reader, std::string_view key) {
  return static_cast<int>(std::max<int64_t>(0, reader.IntOr(key, -1, -1)));
}

void ReadSchedule(JsonReader& reader, LsLmConfig& config) {
  const bool paper = reader.ChoiceOr("schedule", "paper", {"paper", "blocks"}) == "paper";
  config.schedule = paper ? LsSchedule::kPaper : LsSchedule::kBlocks;
  if (paper) {
    for (const std::string_view key : {"block_len", "mem_len"}) {
      if (reader.Has(key)) reader.Refuse(key, "null or absent (schedule is \"paper\")");
    }
    reader.ChoiceOr("zero_memory", "none", {"none"});
    return;
  }
  config.zero_memory =
      reader.ChoiceOr("zero_memory", "reference", {"reference", "none"}) == "reference";
  config.block = static_cast<int>(reader.Int("block_len", 1, kLargestPrefillAlignment));
  config.memory = static_cast<int>(reader.Int("mem_len", 1, 1 << 26));
  if (!reader.status().ok()) return;
  const std::string multiple = absl::StrCat("a multiple of chunk_size, ", config.segment);
  if (config.block % config.segment != 0) reader.Refuse("block_len", multiple);
  if (config.memory % config.segment != 0) reader.Refuse("mem_len", multiple);
  if (config.memory < config.window) {
    reader.Refuse("mem_len", absl::StrCat("at least window_len, ", config.window));
  }
}

void CheckIds(const CommonConfig& common, JsonReader& reader, const LsLmConfig& config) {
  const auto good = [&](int32_t id) { return id >= 0 && id < config.vocab; };
  const std::string expected = absl::StrCat("ids below vocab_size, ", config.vocab);
  if (common.bos_token_id && !good(*common.bos_token_id)) reader.Refuse("bos_token_id", expected);
  if (!std::all_of(common.eos_token_ids.begin(), common.eos_token_ids.end(), good)) {
    reader.Refuse("eos_token_id", expected);
  }
}

}  // namespace

kernels::SchedulePattern LsLmConfig::pattern() const {
  return {heads, window, segment, rank, block, memory, zero_memory};
}

int LsLmConfig::prefill_alignment() const {
  return std::lcm(segment, static_cast<int>(kernels::kBlockSlots));
}

absl::StatusOr<LsLmConfig> ParseLsLmConfig(const json& value, const CommonConfig& common,
                                           const std::string& origin) {
  JsonReader reader(value, origin);
  LsLmConfig config;
  reader.Choice("model_type", {"transformer_ls"});
  RefuseUnknownKeys(value, reader);
  ReadSizes(reader, config);
  config.biases = reader.BoolOr("use_bias", false);
  config.pre_norm = reader.Bool("pre_ln");
  config.activation = reader.Bool("use_gelu") ? Activation::kGelu : Activation::kRelu;
  config.clamp_distance = ReadClamp(reader, "clamp_len");
  config.clamp_segments = ReadClamp(reader, "cpos_clamp_len");
  config.exact_frequencies =
      reader.ChoiceOr("inv_freq", "from_file", {"from_file", "exact"}) == "exact";
  if (reader.status().ok()) ReadSchedule(reader, config);
  if (reader.status().ok()) CheckIds(common, reader, config);
  if (reader.status().ok() && config.prefill_alignment() > kLargestPrefillAlignment) {
    reader.Refuse("chunk_size",
                  absl::StrCat("a length whose least common multiple with ", kernels::kBlockSlots,
                               " is at most ", kLargestPrefillAlignment));
  }
  if (!reader.status().ok()) return reader.status();
  return config;
}

std::span<const std::string_view> LsLmArchitectures() { return kArchitectures; }

}  // namespace longview::models
