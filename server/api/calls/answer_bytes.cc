#include "server/api/calls/answer_bytes.h"

#include <optional>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/errors.h"

namespace longview::server {
namespace {

// Less is not worth a look at what the client holds.
constexpr size_t kFew = 64 << 10;

// Bytes that values hold outside of themselves. Structs are taken apart into all of their members:
// one that gets a further member does not compile until it is counted.
struct Outside {
  template <typename T>
  requires(std::is_trivially_copyable_v<T>) static size_t Of(const T&) { return 0; }
  static size_t Of(const std::string& text) { return text.size(); }
  template <typename T>
  static size_t Of(const std::optional<T>& value) {
    return value ? Of(*value) : 0;
  }
  template <typename T>
  static size_t Of(const std::vector<T>& values) {
    size_t bytes = sizeof(T) * values.capacity();
    if constexpr (!std::is_trivially_copyable_v<T>) {
      for (const T& value : values) bytes += Of(value);
    }
    return bytes;
  }
  static size_t Of(const models::TokenLogprob& token) { return Of(token.bytes); }
  static size_t Of(const models::Piece& piece) {
    const auto& [index, echo, text, token_ids, logprobs, top, finish_reason, score] = piece;
    return Sum(index, echo, text, token_ids, logprobs, top, finish_reason, score);
  }
  static size_t Of(const models::HostTensor& tensor) {
    const auto& [name, type, shape, data, strings] = tensor;
    return Sum(name, type, shape, data, strings);
  }
  static size_t Of(const models::LabelScore& label) {
    const auto& [id, name, score] = label;
    return Sum(id, name, score);
  }
  static size_t Of(const models::EntitySpan& entity) {
    const auto& [label, score, text, start, end] = entity;
    return Sum(label, score, text, start, end);
  }
  static size_t Of(const models::AnswerSpan& answer) {
    const auto& [text, score, probability, start, end] = answer;
    return Sum(text, score, probability, start, end);
  }
  static size_t Of(const models::MaskFill::Candidate& candidate) {
    const auto& [id, token, logprob] = candidate;
    return Sum(id, token, logprob);
  }
  static size_t Of(const models::MaskFill& mask) {
    const auto& [position, candidates] = mask;
    return Sum(position, candidates);
  }
  static size_t Of(const models::Detection& detection) {
    const auto& [id, name, score, x0, y0, x1, y1, runs] = detection;
    return Sum(id, name, score, x0, y0, x1, y1, runs);
  }
  static size_t Of(const models::Answer& answer) {
    const auto& [tensors, labels, entities, answers, masks, pair_score, detections, sequences,
                 prompt, usage] = answer;
    return Sum(tensors, labels, entities, answers, masks, pair_score, detections, sequences, prompt,
               usage);
  }

  template <typename... Values>
  static size_t Sum(const Values&... values) {
    return (Of(values) + ... + 0);
  }
};

absl::Status OverAll(size_t bytes, size_t limit) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the answer takes ", bytes, " bytes in memory or more, the limit is ", limit,
                   " for one client (three times --max_message_bytes)"),
      {.reason = "ANSWER_TOO_LARGE"});
}

}  // namespace

size_t MemoryOf(const models::Piece& piece) { return sizeof(piece) + Outside::Of(piece); }

size_t MemoryOf(const models::Answer& answer) { return sizeof(answer) + Outside::Of(answer); }

absl::Status AnswerBytes::Add(size_t bytes) {
  const size_t sum = bytes_ + bytes;
  if (budget_ != nullptr && sum > kFew) {
    if (sum > budget_->limits().per_client) return OverAll(sum, budget_->limits().per_client);
    if (bytes_ <= kFew) {
      ASSIGN_OR_RETURN(auto held, budget_->TryReserve(client_, sum));
      held_ = std::move(held);
    } else
      RETURN_IF_ERROR(held_.Resize(sum));
  }
  bytes_ = sum;
  return absl::OkStatus();
}

}  // namespace longview::server
