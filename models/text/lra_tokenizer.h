// The tokenizers of Long Range Arena models, as tokenizer_config.json names them:
//
//   LRAWordTokenizer  {"split_pattern": "\\W+", "vocab_file": "vocab.json"}: pieces between runs
//                     of characters that are no part of a word; unknown ones get one id behind all
//   LRAByteTokenizer  {"byte_offset": 1}: id = byte + offset, any bytes
//
// Neither adds tokens of its own. Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/text/text_codec.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// A tokenizer.json that reads words as LRAWordTokenizer does. `vocab` is {token: id} with ids from
// 1 on; `config` is tokenizer_config.json.
absl::StatusOr<nlohmann::json> ComposeLraWordTokenizer(nlohmann::json vocab,
                                                       const nlohmann::json& config);

struct LraBytes {
  std::unique_ptr<TextCodec> codec;
  int max_id = 0;
  int64_t model_max_length = 0;  // 0 = none given.
};

// Unset if the directory's tokenizer_config.json names another class, or is not there.
absl::StatusOr<std::optional<LraBytes>> ReadLraBytes(const std::string& directory);

}  // namespace longview::models
