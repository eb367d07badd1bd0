#include "models/text/byte_vocabulary.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/text/utf8.h"

namespace longview::models {

std::vector<int32_t> EncodeBytes(std::string_view bytes, int max_length) {
  if (max_length > 0) bytes = bytes.substr(0, static_cast<size_t>(max_length));
  std::vector<int32_t> ids;
  ids.reserve(bytes.size());
  for (char byte : bytes) ids.push_back(static_cast<unsigned char>(byte) + 1);
  return ids;
}

absl::StatusOr<std::string> DecodeBytes(std::span<const int32_t> ids) {
  std::string bytes;
  for (int32_t id : ids) {
    if (id < 0 || id >= kByteVocabularySize) {
      return absl::InvalidArgumentError(
          absl::StrCat("token id ", id, " is not in [0, ", kByteVocabularySize - 1, "]"));
    }
    if (id > 0) bytes.push_back(static_cast<char>(id - 1));
  }
  return ReplaceInvalidUtf8(bytes);
}

}  // namespace longview::models
