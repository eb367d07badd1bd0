#include "models/text/byte_codec.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"
#include "models/text/dictionary.h"

namespace longview::models {
namespace {

constexpr int kByteValues = 256;

// The byte that a symbol of enwik8's dictionary stands for: a decimal number as Python writes it.
std::optional<unsigned char> NumberByte(const std::string& symbol) {
  int value = 0;
  if (!absl::SimpleAtoi(symbol, &value) || value < 0 || value >= kByteValues) return std::nullopt;
  if (absl::StrCat(value) != symbol) return std::nullopt;
  return static_cast<unsigned char>(value);
}

std::optional<unsigned char> CharacterByte(const std::string& symbol) {
  if (symbol.size() != 1) return std::nullopt;
  return static_cast<unsigned char>(symbol[0] == '_' ? ' ' : symbol[0]);
}

// A file name inside the directory, not a way out of it.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
}

}  // namespace

void ByteCodec::Pair(unsigned char byte, int32_t id) {
  ids_[byte] = id;
  bytes_[static_cast<size_t>(id)] = static_cast<char>(byte);
}

std::unique_ptr<ByteCodec> ByteCodec::Offset(int offset, int vocabulary) {
  std::unique_ptr<ByteCodec> codec(new ByteCodec(vocabulary));
  for (int byte = 0; byte < kByteValues; ++byte) {
    codec->Pair(static_cast<unsigned char>(byte), byte + offset);
  }
  return codec;
}

absl::StatusOr<std::unique_ptr<ByteCodec>> ByteCodec::FromDictionary(const std::string& type,
                                                                     const std::string& path,
                                                                     int vocabulary) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestDictionary));
  ASSIGN_OR_RETURN(const Dictionary dictionary, Dictionary::Parse(text, path));
  if (dictionary.size() != vocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", dictionary.size() - 4, " symbols and 4 specials make ",
                     dictionary.size(), " ids, vocab_size is ", vocabulary));
  }
  const bool numbers = type == "fairseq_enwik8";
  std::unique_ptr<ByteCodec> codec(new ByteCodec(vocabulary));
  codec->ids_.fill(Dictionary::kUnk);
  for (int32_t id = 4; id < vocabulary; ++id) {
    const std::string symbol(dictionary.Symbol(id));
    const auto byte = numbers ? NumberByte(symbol) : CharacterByte(symbol);
    if (byte) codec->Pair(*byte, id);
  }
  codec->Pair('\n', Dictionary::kEos);
  if (!numbers) codec->ids_['_'] = codec->ids_[' '];
  return codec;
}

absl::StatusOr<std::unique_ptr<ByteCodec>> ByteCodec::Create(const nlohmann::json* object,
                                                             const std::string& directory,
                                                             int vocabulary,
                                                             const std::string& origin) {
  const nlohmann::json standard = {{"type", "bytes"}};
  if (object != nullptr && !object->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": \"tokenizer\": expected an object, found ", ShortJson(*object)));
  }
  JsonReader reader(object == nullptr ? standard : *object, origin + ": tokenizer");
  const std::string type = reader.Choice("type", {"bytes", "fairseq_enwik8", "fairseq_text8"});
  if (!reader.status().ok()) return reader.status();
  if (type == "bytes") {
    reader.RefuseUnknown({"type", "offset"});
    const int64_t offset = reader.IntOr("offset", 0);
    if (reader.status().ok() && offset + kByteValues > vocabulary) {
      reader.Refuse("offset", absl::StrCat("an offset that leaves room for ", kByteValues,
                                           " bytes below vocab_size, ", vocabulary));
    }
    if (!reader.status().ok()) return reader.status();
    return Offset(static_cast<int>(offset), vocabulary);
  }
  reader.RefuseUnknown({"type", "file"});
  const std::string file = reader.String("file");
  if (reader.status().ok() && !IsPlainName(file)) {
    reader.Refuse("file", "the name of a file in the model directory");
  }
  if (!reader.status().ok()) return reader.status();
  return FromDictionary(type, (std::filesystem::path(directory) / file).string(), vocabulary);
}

absl::StatusOr<std::vector<int32_t>> ByteCodec::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (const char byte : text) ids.push_back(ids_[static_cast<unsigned char>(byte)]);
  return ids;
}

absl::StatusOr<TextTokens> ByteCodec::EncodeFirst(std::string_view text,
                                                  const TextBounds& bounds) const {
  if (bounds.uncounted) {
    FirstTokens first(bounds);
    for (const char byte : text) first.Take(ids_[static_cast<unsigned char>(byte)]);
    return first.Result();
  }
  TextTokens result;
  result.tokens = std::ssize(text);
  if (!text.empty()) result.last = ids_[static_cast<unsigned char>(text.back())];
  const bool over = result.tokens > bounds.keep;
  if (over && !bounds.cut) return result;
  ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                   Encode(text.substr(0, over ? static_cast<size_t>(bounds.keep) : text.size())));
  result.ids = std::move(ids);
  return result;
}

std::string ByteCodec::Bytes(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= bytes_.size()) return {};
  const std::optional<char> byte = bytes_[static_cast<size_t>(id)];
  return byte ? std::string(1, *byte) : std::string();
}

}  // namespace longview::models
