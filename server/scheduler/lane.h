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
#include "server/scheduler/running_set.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

// A batch under way: the long one, or a short one that runs between its slices. A slice is what the
// device computes of a batch at a stretch: a layer, or a part of one.
struct RunningBatch {
  Batch batch;
  absl::Time start;
  absl::Time end;            // Predicted.
  absl::Time soonest;        // Earliest deadline of its members.
  double bytes = 0;          // Reserved by its members.
  double interrupted = 0;    // Seconds of all turns that went between its slices.
  double nested = 0;         // Seconds of the batches among those turns.
  double counted = 0;        // Own seconds that LaneTurns::steps_lead accounts for already.
  double longest_slice = 0;  // Seconds.
  int wanted = 0;            // Tickets that somebody still waits for.
  std::vector<TicketId> drops;
  bool task = false;  // Work of the server itself, without tickets.

  // Seconds that it computed.
  double Own(absl::Time now) const { return absl::ToDoubleSeconds(now - start) - interrupted; }
  // Seconds that it still takes: what is left of the prediction, and once it has overrun that, as
  // long again as it has overrun, so that the estimate never falls to zero.
  double Left(absl::Time now) const {
    return std::max(absl::ToDoubleSeconds(end - now), Own(now) - batch.seconds);
  }
};

// The work of a lane now. Turns of generating tickets go between the slices of a batch.
struct LaneTurns {
  std::vector<RunningBatch> batches;  // At most two: the outer one, and one between its slices.
  double longest_slice = 0;           // Seconds, over recent batches.
  // Seconds that steps had more than batches since both have wanted the lane.
  double steps_lead = 0;
  bool stepped = false;  // A step has run since the last slice.

  std::optional<Batch> step;  // Running: a step or membership turn, alone or within the batch.
  absl::Time step_start;
  std::vector<TicketId> step_drops;

  // The longest slice that steps have to expect.
  double Slice() const {
    double slice = longest_slice;
    for (const RunningBatch& running : batches) slice = std::max(slice, running.longest_slice);
    return slice;
  }
};

struct Lane : LaneTurns {
  Lane(int lane_number, double inter_token_seconds)
      : number(lane_number), running_set(inter_token_seconds) {}

  int number;
  bool lost = false;     // The device answers no more: nothing starts here.
  bool yielded = false;  // The lane's thread does other work until its next NextBatch.

  RunningSet running_set;
  absl::flat_hash_map<TicketId, Ticket> joining;  // Being started by the membership turn that runs.
  std::vector<TicketId> leaving;                  // Started, dropped, in no turn.
  bool joins_changed = false;                     // There may be room for a waiting ticket now.
  double reserved = 0;                            // Bytes of started generating tickets.
  double held = 0;                                // Bytes of open documents: the sum of `holds`.
  std::map<uint64_t, double> holds;               // Bytes of each document.
  int documents = 0;                              // Number of documents open on this lane.

  bool running() const { return !batches.empty() || step.has_value(); }

  // When a batch could start here; generating tickets share the device with it.
  absl::Time FreeAt(absl::Time now) const {
    const bool busy = !batches.empty() && batches.front().wanted > 0;
    return busy ? std::max(now, batches.front().end) : now;
  }
  double BusySeconds(absl::Time now) const { return absl::ToDoubleSeconds(FreeAt(now) - now); }

  size_t remembered() const {
    return batches.size() + step_drops.size() + leaving.size() + holds.size() + running_set.size();
  }
};

}  // namespace longview::server
