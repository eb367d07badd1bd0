// The bounds and proportions of a scheduler; scheduler/README.md says what they do.
#pragma once

#include "absl/time/time.h"

namespace longview::server {

struct SchedulerOptions {
  int lanes = 1;
  double max_queue_seconds = 30;  // Predicted work that may wait, for each lane.
  // Predicted work of a batch of several tickets: as everybody in a batch waits for all of it, no
  // more than uses the device well.
  double batch_seconds = 0.1;
  // Under load a batch may take half of what waits, up to this: its products fill their panels, and
  // each of its tickets would have waited as long for the others' batches.
  double full_batch_seconds = 0.4;
  int max_batch_items = 256;
  double memory_bytes = 0;  // Bytes that running work may reserve on a lane; 0 = no limit.
  bool keeps_state = true;  // False: generating tickets that take any bytes are refused.
  // How far a client or a model may get ahead of others for the sake of deadlines.
  double slack_seconds = 0.1;
  absl::Duration patience = absl::Seconds(10);  // See waiting_queue.h.
  // The longest time between two tokens of a sequence that steps are planned for; longer only
  // where the machine or a slice of a batch is too slow for it (Scheduler::InterTokenCeiling).
  double inter_token_seconds = 0.1;
  // Share of a running batch's time that shorter ones may take between its slices.
  double nested_share = 0.14;
  // Seconds that shorter batches may take beside a batch of a few seconds, whose share would be
  // less than one request.
  double nested_seconds = 0.5;
  // Whether a batch may run between the slices of another of its model; false where they share
  // buffers.
  bool nests_within_model = true;
  // Most generating tickets at a time on a lane, over all models.
  int max_generating = 256;
};

}  // namespace longview::server
