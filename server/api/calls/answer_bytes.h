// The memory of answers on their way to a client: counted among the client's bytes before it is
// joined, copied or written out.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "models/model.h"
#include "server/limits/byte_budget.h"

namespace longview::server {

// Bytes that a piece or an answer takes, about.
size_t MemoryOf(const models::Piece& piece);
size_t MemoryOf(const models::Answer& answer);

// Bytes of one call's answers, given back when it is destroyed. Not thread-safe by itself.
class AnswerBytes {
 public:
  AnswerBytes() = default;  // Counts nothing.
  // `budget` outlives it; null: nothing is counted.
  AnswerBytes(ByteBudget* budget, std::string client)
      : budget_(budget), client_(std::move(client)) {}

  // INVALID_ARGUMENT for more than one client may ever hold, RESOURCE_EXHAUSTED for what does not
  // fit now; what was counted stays. A few kilobytes always fit.
  absl::Status Add(size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  ByteBudget* budget_ = nullptr;
  std::string client_;
  size_t bytes_ = 0;
  ByteBudget::Reservation held_;
};

}  // namespace longview::server
