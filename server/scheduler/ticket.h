// Plain values that the scheduler takes in and gives out about a request.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace longview::server {

using TicketId = uint64_t;
using ModelId = uint32_t;

// Seconds until an event that never happens.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A request that asks for the device.
struct Ticket {
  TicketId id = 0;
  ModelId model = 0;
  std::string client;         // The unit of fairness.
  double seconds = 0;         // Predicted device time.
  double prompt_seconds = 0;  // Part of `seconds` for reading the prompt, if it generates.
  double bytes = 0;           // Reserved from the start of its batch to the end of its work.
  absl::Time deadline = absl::InfiniteFuture();
  // Whether the deadline is the client's: then the ticket is refused, or leaves the queue, once it
  // is out of reach. The server's own time-out ends only what has really reached it.
  bool firm = true;
  double weight = 1;  // The client's share relative to others.
  // Number of tickets, this one included, that came together and all return if one is refused.
  double list = 1;
  absl::Time arrival = absl::InfinitePast();
  // The lane that holds the document it continues; -1 = any. Only if it generates.
  int lane = -1;

  // Only generating tickets, which go on over many steps of their model, have these two:
  int prefill_alignment = 0;  // Prompt tokens are granted in multiples of this; 0 = no generation.
  double step_seconds = 0;    // Predicted fixed cost of a step, beyond its grants; see StepNeed.
  bool generates() const { return prefill_alignment > 0; }
};

// Needs of the next step of a generating ticket.
struct StepNeed {
  int prefill = 0;             // Tokens to read before the next one can be sampled.
  double prefill_seconds = 0;  // Predicted, per token read.
  double decode_seconds = 0;   // Predicted, of a token for each of its sequences.
  double pace = 1;             // Recent measured over predicted seconds of sampling tokens.
  double read_pace = 1;        // Recent measured over predicted seconds of reading tokens.
  double prompt_seconds = 0;   // Predicted, of all of `prefill`.
};

// The outcome of a step, or of a start, for one ticket.
struct StepOutcome {
  TicketId id = 0;
  bool done = false;      // Finished, failed, or dropped.
  StepNeed need = {};     // Unless done.
  uint64_t hold = 0;      // The document it read into, whose bytes Scheduler::Hold keeps; 0 = none.
  double hold_bytes = 0;  // Bytes of that document from here on.
};

enum class Verdict {
  kAdmitted,
  kQueueFull,   // Repeat later.
  kTooLate,     // The deadline cannot be met.
  kTooLarge,    // `bytes` is more than the device has.
  kMemoryFull,  // `bytes` is more than open documents leave. Repeat later.
  kLost,        // No device is left that could run it.
};

struct Admission {
  Verdict verdict = Verdict::kAdmitted;
  double wait_seconds = 0;  // Predicted work in front of it.
  // When a refused request may succeed; unset if waiting does not help.
  std::optional<absl::Duration> retry_after;
  double need = 0;   // Needed under the rule that refused: seconds (queue, deadline) or bytes.
  double limit = 0;  // Limit of that rule, in the same unit.
  // Waiting tickets of another client that made room; they have left the queue.
  std::vector<TicketId> displaced;
  int lanes = 1;  // For a full queue: the devices that `limit` counts.
};

// A ticket that left because of its deadline, or because it can have its memory or device no more.
struct Departure {
  TicketId id = 0;
  bool was_running = false;
  bool memory = false;  // Held for documents since it was admitted.
  bool lost = false;    // No device is left that could run it.
};

// A turn of the device: a batch that is computed once; a step of the generating tickets of one
// model; or a change of who generates, which computes nothing.
enum class TurnKind { kBatch, kStep, kMembership };

struct Batch {
  ModelId model = 0;  // Set for a batch or step.
  // In the order they were chosen; in a membership turn: to be started.
  std::vector<TicketId> tickets;
  double seconds = 0;  // Predicted.
  TurnKind kind = TurnKind::kBatch;
  // For a step, beside `tickets`: prompt tokens to read, or 0 for the next token of its sequences.
  std::vector<int> prefill;
  // For a membership turn: generating tickets nobody waits for, to be ended.
  std::vector<TicketId> leaving;
};

enum class CancelOutcome {
  kUnknown,  // Never seen, or already gone.
  kRemoved,  // Taken out of the queue.
  kRunning,  // Started already: TakeDrops or a membership turn's `leaving` tells the executor.
};

struct QueueGauges {
  int64_t queued_requests = 0;  // Expected or waiting.
  int64_t running_requests = 0;
  double queued_seconds = 0;
};

}  // namespace longview::server
