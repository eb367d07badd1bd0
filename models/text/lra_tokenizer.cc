#include "models/text/lra_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"
#include "models/text/byte_codec.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr char kPattern[] = "\\W+";
// Holds characters that end words, so no piece of a text can be spelled like it.
constexpr char kUnknown[] = "[unknown]";

}  // namespace

absl::StatusOr<json> ComposeLraWordTokenizer(json vocab, const json& config) {
  JsonReader reader(config, "tokenizer_config.json");
  reader.RefuseUnknown(
      {"tokenizer_class", "split_pattern", "vocab_file", "pad_token_id", "model_max_length"});
  reader.ChoiceOr("split_pattern", kPattern, {kPattern});
  reader.ChoiceOr("vocab_file", "vocab.json", {"vocab.json"});
  if (reader.IntOr("pad_token_id", 0, -1) != 0) reader.Refuse("pad_token_id", "0");
  if (!reader.status().ok()) return reader.status();
  if (vocab.contains(kUnknown)) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocab.json: token \"", kUnknown, "\": ids of words only"));
  }
  // Ids 1 .. V without a gap: the id behind them is every other word's.
  const uint64_t count = vocab.size();
  for (const auto& [token, id] : vocab.items()) {
    if (id.is_number_unsigned() && id >= 1 && id <= count) continue;
    return absl::InvalidArgumentError(absl::StrCat("vocab.json: token \"", token,
                                                   "\": expected an id in [1, ", count, "], found ",
                                                   ShortJson(id)));
  }
  vocab[kUnknown] = count + 1;
  return json{
      {"version", "1.0"},
      {"pre_tokenizer",
       {{"type", "Split"},
        {"pattern", {{"Regex", kPattern}}},
        {"behavior", "Removed"},
        {"invert", false}}},
      {"model", {{"type", "WordLevel"}, {"vocab", std::move(vocab)}, {"unk_token", kUnknown}}}};
}

absl::StatusOr<std::optional<LraBytes>> ReadLraBytes(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "tokenizer_config.json").string();
  absl::StatusOr<json> file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status())) return std::optional<LraBytes>();
  if (!file.ok()) return file.status();
  if (file->value("tokenizer_class", json()) != "LRAByteTokenizer") {
    return std::optional<LraBytes>();
  }
  JsonReader reader(*file, path);
  reader.RefuseUnknown({"tokenizer_class", "byte_offset", "pad_token_id", "model_max_length"});
  const int64_t offset = reader.IntOr("byte_offset", 1, 1, 1 << 20);
  if (reader.IntOr("pad_token_id", 0, -1) != 0) reader.Refuse("pad_token_id", "0");
  LraBytes bytes;
  bytes.model_max_length = reader.IntOr("model_max_length", 0, 0);
  if (!reader.status().ok()) return reader.status();
  bytes.max_id = static_cast<int>(offset) + 255;
  const json object = {{"type", "bytes"}, {"offset", offset}};
  ASSIGN_OR_RETURN(std::unique_ptr<ByteCodec> codec,
                   ByteCodec::Create(&object, directory, bytes.max_id + 1, path));
  bytes.codec = std::move(codec);
  return std::optional<LraBytes>(std::move(bytes));
}

}  // namespace longview::models
