// Decides what one device does next. All policy, no threads: the caller says what happened
// and asks what to do; time comes from the clock it was given.
//
// A request is expected (known, its cost not yet), waiting, running, gone:
//
//   Expect -> Admit -> NextBatch -> Finish
//
// * The queue is bounded in predicted seconds. Where it is full, a client that has less
//   waiting than the longest displaces that one's least urgent tickets; else it is refused
//   with the time until there is room.
// * A deadline that the work in front of a ticket and the running batch leave no time for is
//   refused at admission; a waiting ticket leaves as soon as its latest start is before the
//   earliest moment the device can be free. Nothing is spent on it.
// * NextBatch never leaves an idle device without work that waits. A batch starts with the
//   ticket whose turn it is (waiting_line.h) and takes more of the same model while their
//   seconds fit the budget, their bytes fit the memory, and no member's deadline is missed by
//   waiting for the others. A ticket larger than the budget runs alone.
// * Running tickets that are cancelled or expire are reported by TakeDrops between layers.
//
// Continuous generation needs no second scheduler. A turn is then one step: NextBatch grants
// each running sequence of the model its next token first, and gives what is left of the
// budget to prefill in whole segments, in the order of WaitingLine::Serve; a grant is a ticket
// with a number of tokens beside Batch::tickets. A ticket whose work goes on stays running
// over Finish (which then takes the ids that are done), keeps its bytes, and is charged per
// step what the step cost, so fairness, deadlines, drops and memory mean the same as here.
//
// Not thread-safe; DeviceQueue is the shell that is.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/scheduler/clock.h"
#include "server/scheduler/ticket.h"
#include "server/scheduler/waiting_line.h"

namespace longview::server {

struct SchedulerOptions {
  double max_queue_seconds = 30;  // Predicted work that may wait.
  // Predicted work of a batch of several tickets: enough to use the device fully, no more, as
  // everybody in a batch waits for all of it.
  double batch_seconds = 0.1;
  int max_batch_items = 256;
  double memory_bytes = 0;  // That running work may reserve; 0 = no limit.
  // How far a client or a model may get ahead of others for the sake of deadlines.
  double slack_seconds = 0.1;
  absl::Duration patience = absl::Seconds(10);  // See waiting_line.h.
};

class Scheduler {
 public:
  // `clock` is borrowed.
  Scheduler(const SchedulerOptions& options, const Clock& clock);

  // A request whose cost is not known yet. It leaves at its deadline if Admit or Cancel does
  // not come before. REQUIRES: the id is new.
  void Expect(TicketId id, ModelId model, absl::Time deadline);

  // An expected id may be admitted or refused; either way it is expected no more.
  // REQUIRES: the id is new or expected.
  Admission Admit(const Ticket& ticket);

  // What Admit would say; changes nothing.
  Admission Judge(const Ticket& ticket) const;

  CancelOutcome Cancel(TicketId id);

  // Takes out who cannot or did not make the deadline. Those that were running are also
  // reported by TakeDrops.
  std::vector<Departure> Expire();

  // When Expire has something to do next, unless something else happens before.
  absl::Time NextExpiry() const;

  // Nothing if nothing waits or a batch runs. REQUIRES: Expire was called just before, so that
  // all that waits can be done in time.
  std::optional<Batch> NextBatch();

  // Running tickets nobody waits for any more, each reported once.
  std::vector<TicketId> TakeDrops();
  // Whether anybody waits for the running batch.
  bool Wanted() const { return running_wanted_ > 0; }

  // The running batch is over. REQUIRES: one runs.
  void Finish();

  bool running() const { return batch_.has_value(); }
  bool waiting() const { return !line_.empty(); }

  // For how long work has waited for a device that did nothing; 0 if it does not.
  absl::Duration Stalled() const;

  // Predicted seconds of waiting work and of what is left of the running batch.
  double WorkSeconds() const;
  QueueGauges GaugesOf(ModelId model) const;
  QueueGauges Gauges() const;

  // Entries kept about requests, clients and models; 0 when nothing is going on.
  size_t remembered() const;

 private:
  enum class Stage { kExpected, kWaiting, kRunning, kDropped };
  struct Entry {
    Stage stage;
    ModelId model;
    absl::Time deadline;
    double seconds = 0;
  };
  using TimeIndex = std::set<std::pair<absl::Time, TicketId>>;

  // When the device can start something else.
  absl::Time EarliestStart(absl::Time now) const;
  static absl::Time LatestStart(absl::Time deadline, double seconds);
  Admission JudgeWithRoom(const Ticket& ticket, double freed) const;
  void RemoveWaiting(TicketId id);
  void Start(const Ticket& ticket);
  void Count(ModelId model, Stage stage, double seconds, int sign);

  const SchedulerOptions options_;
  const Clock& clock_;
  WaitingLine line_;
  absl::flat_hash_map<TicketId, Entry> entries_;
  std::map<ModelId, QueueGauges> gauges_;
  TimeIndex latest_starts_;  // Of waiting tickets.
  TimeIndex deadlines_;      // Of expected and running ones.

  std::optional<Batch> batch_;  // Running.
  absl::Time batch_end_;        // Predicted.
  int running_wanted_ = 0;
  std::vector<TicketId> drops_;
  absl::Time last_progress_;
};

}  // namespace longview::server
