// What the scheduler knows of a request, and what it says about it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace longview::server {

using TicketId = uint64_t;
using ModelId = uint32_t;

// A request that asks for the device.
struct Ticket {
  TicketId id = 0;
  ModelId model = 0;
  std::string client;  // The unit of fairness.
  double seconds = 0;  // Predicted device time.
  double bytes = 0;    // Reserved from the start of its batch to the end of its work.
  absl::Time deadline = absl::InfiniteFuture();
  double weight = 1;  // The client's share relative to others.
};

enum class Verdict {
  kAdmitted,
  kQueueFull,  // Repeat later.
  kTooLate,    // The deadline cannot be met.
  kTooLarge,   // `bytes` is more than the device has.
};

struct Admission {
  Verdict verdict = Verdict::kAdmitted;
  double wait_seconds = 0;  // Predicted work in front of it.
  // When a refused request may succeed; unset if waiting does not help.
  std::optional<absl::Duration> retry_after;
  // Of the rule that refused: seconds (queue, deadline) or bytes.
  double need = 0;
  double limit = 0;
  // Waiting tickets of another client that made room; they have left the queue.
  std::vector<TicketId> displaced;
};

// A ticket that left because of its deadline.
struct Departure {
  TicketId id = 0;
  bool was_running = false;
};

// Work for the device: tickets of one model, in the order they were chosen.
struct Batch {
  ModelId model = 0;
  std::vector<TicketId> tickets;
  double seconds = 0;  // Predicted.
};

enum class CancelOutcome {
  kUnknown,  // Never seen, or already gone.
  kRemoved,  // It was waiting; it has left.
  kRunning,  // It is in the running batch; TakeDrops tells the executor.
};

struct QueueGauges {
  int64_t queued_requests = 0;  // Expected or waiting.
  int64_t running_requests = 0;
  double queued_seconds = 0;
};

}  // namespace longview::server
