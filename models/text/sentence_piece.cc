#include "models/text/sentence_piece.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/text/utf8.h"

namespace longview::models {
namespace {

// A member of a message: its number and its value, whichever the wire holds.
struct Field {
  uint64_t number = 0;
  uint64_t integer = 0;
  float real = 0;
  std::string_view bytes = {};
};

// Removes `count` bytes from the front; none if there are fewer.
std::optional<std::string_view> Take(std::string_view& rest, uint64_t count) {
  if (count > rest.size()) return std::nullopt;
  const std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

// Seven bits a byte, the lowest first; a set upper bit says that more follow.
std::optional<uint64_t> TakeVarint(std::string_view& rest) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = Take(rest, 1);
    if (!byte) return std::nullopt;
    const auto bits = static_cast<uint8_t>(byte->front());
    value |= static_cast<uint64_t>(bits & 0x7f) << shift;
    if (bits < 0x80) return value;
  }
  return std::nullopt;
}

// The wire format of protobuf without its deprecated groups, which this message does not have.
std::optional<Field> TakeField(std::string_view& rest) {
  enum : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  const auto tag = TakeVarint(rest);
  if (!tag || *tag >> 3 == 0) return std::nullopt;
  Field field{.number = *tag >> 3};
  std::optional<std::string_view> bytes = std::string_view();
  switch (*tag & 7) {
    case kVarint: {
      const auto value = TakeVarint(rest);
      if (!value) return std::nullopt;
      field.integer = *value;
      break;
    }
    case kFixed64:
      bytes = Take(rest, sizeof(uint64_t));
      break;
    case kBytes: {
      const auto length = TakeVarint(rest);
      bytes = length ? Take(rest, *length) : std::nullopt;
      if (bytes) field.bytes = *bytes;
      break;
    }
    case kFixed32:
      bytes = Take(rest, sizeof field.real);
      if (bytes) std::memcpy(&field.real, bytes->data(), sizeof field.real);
      break;
    default:
      return std::nullopt;
  }
  return bytes ? std::optional(field) : std::nullopt;
}

bool ReadMessage(std::string_view bytes, const std::function<bool(const Field&)>& take) {
  while (!bytes.empty()) {
    const std::optional<Field> field = TakeField(bytes);
    if (!field || !take(*field)) return false;
  }
  return true;
}

bool ReadPiece(std::string_view bytes, SentencePieceModel::Piece& piece) {
  const bool good = ReadMessage(bytes, [&](const Field& field) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = field.real;
    if (field.number == 3) piece.type = static_cast<uint32_t>(field.integer);
    return true;
  });
  return good && std::isfinite(piece.score) && ReplaceInvalidUtf8(piece.text) == piece.text;
}

}  // namespace

absl::StatusOr<SentencePieceModel> ParseSentencePiece(const std::string& bytes) {
  SentencePieceModel model;
  const auto trainer = [&](const Field& field) {
    if (field.number == 3) model.kind = static_cast<uint32_t>(field.integer);
    if (field.number == 35) model.byte_fallback = field.integer != 0;
    return true;
  };
  const auto normalizer = [&](const Field& field) {
    if (field.number == 2) model.charsmap = field.bytes;
    return true;
  };
  const bool good = ReadMessage(bytes, [&](const Field& field) {
    if (field.number == 1) return ReadPiece(field.bytes, model.pieces.emplace_back());
    if (field.number == 2) return ReadMessage(field.bytes, trainer);
    if (field.number == 3) return ReadMessage(field.bytes, normalizer);
    return true;
  });
  if (good && !model.pieces.empty()) return model;
  return absl::InvalidArgumentError(
      absl::StrCat("not a vocabulary of SentencePiece (", bytes.size(), " bytes)"));
}

}  // namespace longview::models
