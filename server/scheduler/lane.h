// One of the devices that a scheduler serves: what runs on it, who generates there, and what these
// and open documents keep of its memory. Plain values; the Scheduler decides and keeps them true.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/scheduler/roster.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

// What a lane does now. Turns of generating tickets go between the layers of a batch.
struct LaneTurns {
  std::optional<Batch> batch;  // Running.
  absl::Time batch_start;
  absl::Time batch_end;      // Predicted.
  absl::Time batch_soonest;  // Deadline of its members.
  double interrupted = 0;    // Seconds of turns that went between its layers.
  double longest_layer = 0;  // Seconds, of the running batch.
  // Of a batch, what its longest layer takes; learnt from the batches before.
  double layer_share = 0.1;
  int wanted = 0;               // Of its tickets, those somebody waits for.
  std::vector<TicketId> drops;  // Of the batch.

  std::optional<Batch> step;  // Running: a step or roster, alone or within the batch.
  absl::Time step_start;
  std::vector<TicketId> step_drops;
};

struct Lane : LaneTurns {
  Lane(int lane_number, double inter_token_seconds)
      : number(lane_number), roster(inter_token_seconds) {}

  int number;
  bool lost = false;   // Its device answers no more: nothing starts here.
  bool aside = false;  // Its thread does something else for a while.

  Roster roster;
  absl::flat_hash_map<TicketId, Ticket> joining;  // Being started by the roster that runs.
  std::vector<TicketId> leaving;                  // Started, dropped, in no turn.
  bool joins_changed = false;                     // Something could have made room for who waits.
  double reserved = 0;                            // Bytes of those who have started,
  double held = 0;                                // and of documents.
  std::map<uint64_t, double> holds;               // By document.
  int documents = 0;                              // Open here.

  bool running() const { return batch.has_value() || step.has_value(); }

  // When a batch could start here; generating tickets share the device with it.
  absl::Time FreeAt(absl::Time now) const {
    return batch && wanted > 0 ? std::max(now, batch_end) : now;
  }
  double BusySeconds(absl::Time now) const { return absl::ToDoubleSeconds(FreeAt(now) - now); }

  size_t remembered() const {
    return drops.size() + step_drops.size() + leaving.size() + holds.size() + roster.size();
  }
};

}  // namespace longview::server
