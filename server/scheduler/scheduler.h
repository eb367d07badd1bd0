// Decides what a device does next, or each of several alike (lanes) that take from one queue. All
// policy, no threads: the caller says what happened and asks what to do; time comes from the clock
// it was given.
//
// A request is expected (known, its cost not yet), waiting, running, gone:
//
//   Expect -> Admit -> NextBatch -> Finish
//
// * Expect refuses what the known work leaves no room or time for, so that nothing is spent on
//   finding its cost. What is expected counts there only: Admit goes by what is known.
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
// A generating ticket goes on over many turns:
//
//   Admit -> a roster starts it -> steps -> done
//
// * It is started when its bytes fit beside those reserved; the bytes stay reserved until it is
//   over. One that has waited for `patience` is not overtaken by smaller ones. Bytes held for
//   documents (Hold) leave less for all; a ticket that finds no room beside them alone is refused,
//   or leaves the queue, instead of waiting for what may never come. The bound of the queue is
//   for those that do not fit yet: a burst of others is shared out over the steps.
// * A step takes every sequence's next token and as much of prompts as leaves no token late
//   (roster.h). Whoever had part in it is charged for what it took, so that clients and models
//   share the device whether they generate or not: the model that had least goes first.
// * A running batch is interrupted between layers (Interrupt): for a step of next tokens that
//   would be late after one more layer, and for full steps until these had as much time as the
//   batch, unless a deadline in the batch would be missed.
// * Cancelled and expired ones are reported by TakeDrops while they are in a step, else by the
//   next roster.
//
// Several lanes (scheduler_lanes.cc): whichever is free first takes the next batch; a generating
// ticket is started where least is left to do and stays there. Shares, deadlines and the queue's
// bound are of all lanes together, bytes and tokens' due times of each.
//
// Not thread-safe; DeviceQueue is the shell that is.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "server/scheduler/clock.h"
#include "server/scheduler/expected_work.h"
#include "server/scheduler/lane.h"
#include "server/scheduler/ticket.h"
#include "server/scheduler/waiting_line.h"

namespace longview::server {

struct SchedulerOptions {
  int lanes = 1;
  double max_queue_seconds = 30;  // Predicted work that may wait, for each lane.
  // Predicted work of a batch of several tickets: enough to use the device fully, no more, as
  // everybody in a batch waits for all of it.
  double batch_seconds = 0.1;
  int max_batch_items = 256;
  double memory_bytes = 0;  // That running work may reserve on a lane; 0 = no limit.
  // How far a client or a model may get ahead of others for the sake of deadlines.
  double slack_seconds = 0.1;
  absl::Duration patience = absl::Seconds(10);  // See waiting_line.h.
  // The longest time between two tokens of a sequence that steps are planned for; longer only
  // where the machine is too slow for it (Roster::Ceiling), or a layer of another model is.
  double inter_token_seconds = 0.1;
  // Generating tickets at a time on a lane, over all models.
  int max_generating = 256;
};

class Scheduler {
 public:
  // `clock` is borrowed.
  Scheduler(const SchedulerOptions& options, const Clock& clock);

  // A request whose cost is not known yet: `ticket.seconds` is what it is expected to take, 0 =
  // nobody knows; its bytes are 0. Refused only if the queue is full or its deadline out of reach
  // even though everything expected counts for no more than the work that is known, and, in the
  // first case, nobody has so much more waiting that it could take their place; displaces nobody.
  // One that is not refused leaves at its deadline if Admit or Cancel does not come before.
  // REQUIRES: the id is new.
  Admission Expect(const Ticket& ticket);

  // An expected id may be admitted or refused; either way it is expected no more.
  // REQUIRES: the id is new or expected.
  Admission Admit(const Ticket& ticket);

  // What Admit would say; changes nothing. Expected work counts in the wait.
  Admission Judge(const Ticket& ticket) const;

  CancelOutcome Cancel(TicketId id);

  // Takes out who cannot or did not make the deadline. Those that were running are also
  // reported by TakeDrops.
  std::vector<Departure> Expire();

  // When Expire has something to do next, unless something else happens before.
  absl::Time NextExpiry() const;

  // Nothing if there is nothing to do or a turn runs. REQUIRES: Expire was called just before, so
  // that all that waits can be done in time.
  std::optional<Batch> NextBatch(int lane = 0);

  // A step or roster that goes before the next layer of the running batch, whose last layer took
  // `layer_seconds`. REQUIRES: a batch runs and no other turn.
  std::optional<Batch> Interrupt(double layer_seconds, int lane = 0);

  // Tickets of the turn that runs (the inner one) nobody waits for any more, each reported once.
  std::vector<TicketId> TakeDrops(int lane = 0);
  // Whether anybody waits for the running batch.
  bool Wanted(int lane = 0) const { return LaneAt(lane).wanted > 0; }

  // The running batch is over. REQUIRES: one runs, and nothing interrupts it.
  void Finish(int lane = 0);

  // The running step or roster is over: what became of each of its tickets, and of a roster's
  // leaving ones (done).
  void Finish(std::span<const StepOutcome> outcomes, int lane = 0);

  // Sets the bytes that something holds beyond any ticket; 0 = nothing any more.
  void Hold(uint64_t key, double bytes, int lane = 0);

  // The lane for a new document, which is closed with CloseDocument; none if all are lost.
  std::optional<int> OpenDocument();
  void CloseDocument(uint64_t key, int lane);

  // The lane's device answers no more: who generates there has ended, who waits for it alone
  // leaves, nothing starts there. REQUIRES: no turn runs there.
  void Lose(int lane);
  // The lane does something else until its next NextBatch.
  void StepAside(int lane) { LaneAt(lane).aside = true; }
  bool lost(int lane) const { return LaneAt(lane).lost; }

  bool running(int lane) const { return LaneAt(lane).running(); }
  bool running() const;
  bool waiting() const { return !line_.empty(); }
  bool WaitsToGenerate() const { return line_.generating() > 0; }
  // Whether NextBatch would find something if no turn ran, or another lane's would.
  bool HasWork(int lane) const;
  bool HasOwnWork(int lane) const;  // No other lane would.
  bool HasWork() const;

  // Seconds between tokens that steps are planned for at present; of several lanes the longest.
  double InterTokenCeiling() const;
  // Bytes of generation state that started tickets reserve, and that are held.
  double reserved_bytes(int lane = 0) const { return LaneAt(lane).reserved; }
  double held_bytes(int lane = 0) const { return LaneAt(lane).held; }

  // For how long work has waited for devices that did nothing; 0 if it does not.
  absl::Duration Stalled() const;

  // Predicted seconds of expected and waiting work and of what is left of running batches.
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
    double bytes = 0;
    bool generates = false;
    bool in_turn = false;  // Generating: in the step or roster that runs.
    int lane = 0;          // Where it runs.
  };
  using TimeIndex = std::set<std::pair<absl::Time, TicketId>>;
  // Started tickets that do not begin their prompts yet reserve memory for nothing: no more than
  // these on a lane, so that the order in which clients take turns still counts.
  static constexpr size_t kMaxIdle = 8;

  Lane& LaneAt(int lane) { return lanes_[static_cast<size_t>(lane)]; }
  const Lane& LaneAt(int lane) const { return lanes_[static_cast<size_t>(lane)]; }

  // When a device can start something else.
  absl::Time EarliestStart(absl::Time now) const;
  static absl::Time LatestStart(absl::Time deadline, double seconds);
  // `freed`: seconds of the waiting work that would leave.
  Admission JudgeWithRoom(const Ticket& ticket, double freed) const;
  Admission JudgeKnown(const Ticket& ticket) const;
  // Before its cost is known; scheduler_door.cc.
  Admission JudgeExpected(const Ticket& ticket) const;
  TimeIndex& StartsOf(const Ticket& ticket) {
    return ticket.generates() ? latest_joins_ : latest_starts_;
  }
  void RemoveWaiting(TicketId id);
  void Start(const Ticket& ticket, Lane& lane);
  Batch StartBatch(ModelId model, Lane& lane);

  // Which lane; scheduler_lanes.cc.
  static bool MayServe(const Lane& lane, const Ticket& ticket);
  std::vector<const Lane*> LanesFor(const Ticket& ticket) const;
  int AliveLanes() const;
  double QueueLimit() const;
  // Of what documents leave, on the lane that has most for the ticket.
  double RoomBesideDocuments(const Ticket& ticket) const;
  bool HasMostRoom(const Lane& lane, const Ticket& ticket) const;
  bool TakesGenerating(const Lane& lane, const Ticket& ticket) const;
  bool BetterElsewhere(const Lane& lane, const Ticket& ticket) const;
  int OthersFree(const Lane& lane) const;
  // Seconds of a batch of several: lanes that are free share what waits.
  double BatchBudget(const Lane& lane) const;
  // Whose batch is next on the lane, if it is to have one now: not if somebody generates there and
  // another lane stands still.
  const Ticket* NextFor(const Lane& lane) const;
  static WaitingLine::Window WindowOf(const Lane& lane) {
    return lane.roster.empty() ? WaitingLine::Window::kAnybody : WaitingLine::Window::kFair;
  }
  double LoadOf(const Lane& lane) const;
  void JoinsChanged();
  // Those that wait and are `stuck` leave the queue; Expire says so.
  void TurnOut(absl::FunctionRef<bool(const Ticket&)> stuck, bool memory);

  // The turns of generating tickets; scheduler_steps.cc.
  bool Fits(const Lane& lane, const Ticket& ticket) const;
  // Whether it and all that wait to generate fit: it shares the device soon instead of waiting.
  bool StartsAtOnce(const Ticket& ticket) const;
  std::optional<Batch> NextRoster(Lane& lane);
  std::optional<Batch> PlanStep(Lane& lane);
  std::optional<Batch> BeginStep(Lane& lane);
  Batch FullStep(ModelId model, Lane& lane);
  std::optional<ModelId> ModelWithLeast(const Lane& lane) const;
  Batch Begin(Batch turn, Lane& lane);
  void EndGenerating(TicketId id, Lane& lane);
  void Count(ModelId model, Stage stage, double seconds, int sign);

  const SchedulerOptions options_;
  const Clock& clock_;
  ExpectedWork expected_;
  WaitingLine line_;
  absl::flat_hash_map<TicketId, Entry> entries_;
  std::map<ModelId, QueueGauges> gauges_;
  TimeIndex latest_starts_;            // Of waiting tickets that do not generate,
  TimeIndex latest_joins_;             // and of those that do.
  TimeIndex deadlines_;                // Of expected and running ones.
  std::vector<Departure> turned_out_;  // Not reported yet.
  std::vector<Lane> lanes_;
  absl::Time last_progress_;
};

}  // namespace longview::server
