// Reads the vocabulary files of SentencePiece (sentencepiece.bpe.model), a protobuf message.
//
// Thread-safe: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::models {

// The members of ModelProto that a tokenizer.json is made of; defaults as in its .proto.
struct SentencePieceModel {
  enum Kind : uint32_t { kUnigram = 1, kBytePair = 2 };
  enum PieceType : uint32_t { kNormal = 1, kControl = 3, kUserDefined = 4 };
  struct Piece {
    std::string text;
    float score = 0;
    uint32_t type = kNormal;
  };
  std::vector<Piece> pieces;
  uint32_t kind = kUnigram;
  bool byte_fallback = false;
  std::string charsmap;  // The compiled normalizer.
};

// INVALID_ARGUMENT if `bytes` is no such message, or a piece is no UTF-8 or its score no number.
absl::StatusOr<SentencePieceModel> ParseSentencePiece(const std::string& bytes);

}  // namespace longview::models
