#include "models/text/sentence_piece.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstring>
#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// A member of a message: its number and its value, whichever the wire holds.
struct Field {
  int number = 0;
  uint64_t integer = 0;
  float real = 0;
  std::string bytes;
};

bool ReadField(CodedInputStream& in, uint32_t tag, Field& field) {
  field.number = WireFormatLite::GetTagFieldNumber(tag);
  uint32_t word = 0;
  switch (WireFormatLite::GetTagWireType(tag)) {
    case WireFormatLite::WIRETYPE_VARINT:
      return in.ReadVarint64(&field.integer);
    case WireFormatLite::WIRETYPE_FIXED32:
      if (!in.ReadLittleEndian32(&word)) return false;
      std::memcpy(&field.real, &word, sizeof(word));
      return true;
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return in.ReadVarint32(&word) && word <= std::numeric_limits<int32_t>::max() &&
             in.ReadString(&field.bytes, static_cast<int>(word));
    default:
      return WireFormatLite::SkipField(&in, tag);
  }
}

bool ReadMessage(const std::string& bytes, const std::function<bool(const Field&)>& take) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return false;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    Field field;
    if (!ReadField(in, tag, field) || !take(field)) return false;
  }
  return in.ConsumedEntireMessage();
}

bool ReadPiece(const std::string& bytes, SentencePieceModel::Piece& piece) {
  return ReadMessage(bytes, [&](const Field& field) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = field.real;
    if (field.number == 3) piece.type = static_cast<uint32_t>(field.integer);
    return true;
  });
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
