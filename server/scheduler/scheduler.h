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
//   with the time until there is room. What generates and fits shares the device with batches
//   instead of waiting for them: of such tickets the prompts are bounded, to as many seconds
//   (scheduler_prompts.cc).
// * A deadline that the work in front of a ticket and the running batch leave no time for is
//   refused at admission; a waiting ticket leaves as soon as its latest start is before the
//   earliest moment the device can be free. Nothing is spent on it.
// * NextBatch never leaves an idle device without work that waits. A batch starts with the
//   ticket whose turn it is (waiting_queue.h) and takes more of the same model while their
//   seconds fit the budget, their bytes fit the memory, and no member's deadline is missed by
//   waiting for the others. A ticket larger than the budget runs alone.
// * Nobody is overtaken for ever: of what batches take, an eighth goes to the ticket that came
//   first, once it has waited for `patience` (scheduler_batches.cc).
// * Between two slices of a batch (a slice is a layer, or a part of one) a shorter one may run, of
//   at most what is left of the long one, and all of them together in
//     E = max(nested_share T, min(nested_seconds, (T - 1) / 4))
//   where T is what the long one takes: a = min(batch_seconds, E) of it in advance, if T is more
//   than batch_seconds, and the rest as it computes. Bytes of both fit the memory. So requests of s
//   seconds that come one after the other, each when the one before is answered, take
//     s + s T / (E - a), about s (1 + 1 / nested_share) beside a document of many seconds,
//   which takes nested_share longer for it.
// * So beside it a ticket of s <= a waits for a slice, for what is between slices already, and,
//   with S the work like it whose turn is before its own, for max(0, S + s - a) T / (E - a) of the
//   time in which the long one computes, and never beyond its end. Beside a document of 2 s or
//   more, a request of 0.1 s waits for a slice; one of 10 s takes at most a seventh longer.
// * Running tickets that are cancelled or expire are reported by TakeDrops between layers.
//
// A generating ticket goes on over many turns:
//
//   Admit -> a membership turn starts it -> steps -> done
//
// * It is started when its bytes fit beside those reserved; the bytes stay reserved until it is
//   over. One that has waited for `patience` is not overtaken by smaller ones. Bytes held for
//   documents (Hold) leave less for all; a ticket that finds no room beside them alone is refused,
//   or leaves the queue, instead of waiting for what may never come. Those that do not fit yet wait
//   for others to end, and count in the queue with all they take; of a burst of others, which is
//   shared out over the steps, only prompts do, until they are read.
// * A step takes every sequence's next token and as much of prompts as leaves no token late
//   (running_set.h). Whoever had part in it is charged for what it took, so that clients and models
//   share the device whether they generate or not: the model that had least goes first.
// * Where steps and batches both want a lane, each gets half of it: whichever had less goes next,
//   except that a step of next tokens that would be late after one more slice goes before it as
//   long as steps are not ahead by more than the ceiling. At most one such step goes between two
//   slices. Full steps wait where a deadline in the batch would be missed.
// * So no ticket of a batch waits for ever. Let W be the seconds and N the number of the tickets
//   that do not generate and wait when it comes, L the longest batch, B the budget of a batch and C
//   what InterTokenCeiling says: it starts within
//     patience + 2 (1 + n) (8 (W + N B) + 3 L) + 4 C, n = max(nested_share, 0.2)
//   whatever else is admitted, as far as predictions hold.
// * Cancelled and expired ones are reported by TakeDrops while they are in a step, else by the
//   next membership turn.
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
#include "server/scheduler/scheduler_options.h"
#include "server/scheduler/ticket.h"
#include "server/scheduler/waiting_queue.h"

namespace longview::server {

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
  Admission Admit(const Ticket& ticket) { return Admit({&ticket, 1}); }
  // All or none: judged as one ticket that takes what they take together. REQUIRES: there are some,
  // of one client and model; none generates if they are several.
  Admission Admit(std::span<const Ticket> tickets);

  // Admit's answer without its effects. Expected work counts in the wait.
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

  // A turn that goes before the next slice of the running batch, whose last one took
  // `slice_seconds`: a step, a membership turn, or a shorter batch, which then is the running one
  // until its Finish. REQUIRES: a batch runs and no other turn.
  std::optional<Batch> Interrupt(double slice_seconds, int lane = 0);

  // Tickets of the turn that runs (the inner one) nobody waits for any more, each reported once.
  std::vector<TicketId> TakeDrops(int lane = 0);
  // Whether anybody waits for the running batch (the inner one).
  bool Wanted(int lane = 0) const {
    const std::vector<RunningBatch>& batches = LaneAt(lane).batches;
    return !batches.empty() && batches.back().wanted > 0;
  }

  // The lane's thread begins something of its own that takes about so many seconds; as a batch,
  // with turns between its slices and a Finish, but shorter batches have as much of the time as it
  // has. REQUIRES: no turn runs.
  void BeginTask(double seconds, int lane = 0);

  // The running batch (the inner one) or task is over. REQUIRES: one runs, and nothing interrupts
  // it.
  void Finish(int lane = 0);

  // The running step or membership turn is over: what became of each of its tickets, and of a
  // membership turn's leaving ones (done).
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
  void Yield(int lane) { LaneAt(lane).yielded = true; }
  bool lost(int lane) const { return LaneAt(lane).lost; }

  bool running(int lane) const { return LaneAt(lane).running(); }
  bool running() const;
  bool waiting() const { return !queue_.empty(); }
  bool WaitsToGenerate() const { return queue_.generating() > 0; }
  // Whether NextBatch would find something if no turn ran, or another lane's would.
  bool HasWork(int lane) const;
  bool HasOwnWork(int lane) const;  // No other lane would.
  bool HasWork() const;

  // The longest time between two tokens of a sequence at present; of several lanes the longest.
  // The ceiling that steps are planned for; where batches take half of a lane, twice a round of
  // next tokens of all models and a slice for each of them, if that is longer.
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
    bool in_turn = false;  // Generating: in the step or membership turn that runs.
    int lane = 0;          // Where it runs,
    size_t depth = 0;      // and in which of the lane's batches.
  };
  using TimeIndex = std::set<std::pair<absl::Time, TicketId>>;
  // Started tickets that do not begin their prompts yet reserve memory for nothing: no more than
  // these on a lane, so that the order in which clients take turns still counts, and those of a
  // client and model only until one's prompts are enough for the next steps (PromptInFront).
  static constexpr size_t kMaxIdle = 8;

  Lane& LaneAt(int lane) { return lanes_[static_cast<size_t>(lane)]; }
  const Lane& LaneAt(int lane) const { return lanes_[static_cast<size_t>(lane)]; }

  // Prompts; scheduler_prompts.cc.
  // Calls visit(ticket, seconds) for the prompts that wait, of tickets that have started.
  void ForEachWaitingPrompt(absl::FunctionRef<void(const Ticket&, double seconds)> visit) const;
  double WaitingPrompts() const;  // Their seconds,
  double WaitingPromptsOf(ModelId model) const;
  // and a client's as urgent as `until`, together with those that are being read.
  double StartedPromptsOf(const std::string& client, absl::Time until) const;
  // Whether prompts of its client and model that have not begun keep the lane's next steps busy.
  bool PromptInFront(const Lane& lane, const Ticket& ticket) const;
  // The part of the queue that a ticket waits with, and that its bound counts.
  struct Bound {
    WaitingQueue::Measure measure = &Ticket::seconds;  // Counted of tickets in the line.
    double started = 0;                                // Seconds of those that have started.
    bool applies = false;  // Somebody waits: the first one is never refused.
  };
  Bound BoundOf(const Ticket& ticket) const;

  // When a device can start something else.
  absl::Time EarliestStart(absl::Time now) const;
  static absl::Time LatestStart(const Ticket& ticket);
  // `freed`: seconds of the waiting work that would leave.
  Admission JudgeWithRoom(const Ticket& ticket, double freed) const;
  Admission JudgeKnown(const Ticket& ticket) const;
  // Before its cost is known; expected_admission.cc.
  Admission JudgeExpected(const Ticket& ticket) const;
  TimeIndex& StartsOf(const Ticket& ticket) {
    return ticket.generates() || !ticket.firm ? latest_joins_ : latest_starts_;
  }
  void Enter(const Ticket& ticket);
  void EraseStart(const Ticket& ticket);
  void RemoveWaiting(TicketId id);
  void Start(const Ticket& ticket, Lane& lane);

  // Batches; scheduler_batches.cc.
  bool BatchesWait() const { return queue_.size() > queue_.generating(); }
  // The ticket whose batch is next on the lane, if it is to have one now: not if somebody generates
  // there and another lane stands still.
  const Ticket* NextFor(const Lane& lane) const;
  // The ticket that has waited longest, if it is to be next for that.
  const Ticket* AgedNext() const;
  // A batch that begins with `first`, of at most `most` seconds if it is of several. `nested`: it
  // goes between the slices of another.
  Batch StartBatch(const Ticket& first, Lane& lane, double most, bool nested);
  Batch StartNext(const Ticket& first, Lane& lane);
  std::optional<Batch> StartNested(Lane& lane);
  // Room between the slices of a batch: for a ticket of at most so many seconds now; for one of at
  // most so many soon, for which nobody behind it goes before.
  struct NestedRoom {
    double now = 0, soon = 0;
  };
  NestedRoom NestedRoomOf(const Lane& lane) const;
  double NestedShare(const RunningBatch& outer) const {
    return outer.task ? 1 : options_.nested_share;
  }
  // Seconds that shorter work may take in all,
  double NestedTotal(const RunningBatch& outer) const;
  // in advance,
  double NestedAdvance(const RunningBatch& outer) const;
  // and until the long one has computed `own` seconds.
  double NestedAllowance(const RunningBatch& outer, double own) const;
  // Seconds that the long one has to have computed before shorter work may take so many.
  double NestedAfter(const RunningBatch& outer, double nested) const;
  bool MayNest(const Lane& lane, const Ticket& ticket) const;
  // Seconds until the ticket may go between slices, on the lane where that is soonest; infinite if
  // it may not.
  double NestedWait(const Ticket& ticket) const;
  // Enters what the lane's batches computed into its steps_lead.
  void CountSlice(Lane& lane);
  void CountStep(Lane& lane, double seconds);

  // Which lane; scheduler_lanes.cc.
  static bool MayServe(const Lane& lane, const Ticket& ticket);
  std::vector<const Lane*> LanesFor(const Ticket& ticket) const;
  int AliveLanes() const;
  double QueueLimit() const;
  // Most bytes any lane has free beside open documents, for the ticket.
  double RoomBesideDocuments(const Ticket& ticket) const;
  bool HasMostRoom(const Lane& lane, const Ticket& ticket) const;
  bool TakesGenerating(const Lane& lane, const Ticket& ticket) const;
  bool BetterElsewhere(const Lane& lane, const Ticket& ticket) const;
  int OthersFree(const Lane& lane) const;
  // Seconds of a batch of several: lanes that are free share what waits.
  double BatchBudget(const Lane& lane) const;
  double LoadOf(const Lane& lane) const;
  void JoinsChanged();
  // Those that wait and are `stuck` leave the queue; Expire says so.
  void Evict(absl::FunctionRef<bool(const Ticket&)> stuck, bool memory);

  // The turns of generating tickets; scheduler_steps.cc.
  bool Fits(const Lane& lane, const Ticket& ticket) const;
  // Whether it and all that wait to generate fit: it shares the device soon instead of waiting.
  bool StartsAtOnce(const Ticket& ticket) const;
  std::optional<Batch> NextMembership(Lane& lane);
  std::optional<Batch> PlanStep(Lane& lane);
  std::optional<Batch> BeginStep(Lane& lane);
  // The step that goes before the next slice of a batch, or before the next batch.
  std::optional<Batch> StepBefore(Lane& lane, double slice_seconds);
  double CeilingOf(const Lane& lane) const;
  Batch FullStep(ModelId model, Lane& lane);
  std::optional<ModelId> ModelWithLeast(const Lane& lane) const;
  Batch Begin(Batch turn, Lane& lane);
  void EndGenerating(TicketId id, Lane& lane);
  void Count(ModelId model, Stage stage, double seconds, int sign);

  const SchedulerOptions options_;
  const Clock& clock_;
  ExpectedWork expected_;
  WaitingQueue queue_;
  absl::flat_hash_map<TicketId, Entry> entries_;
  std::map<ModelId, QueueGauges> gauges_;
  TimeIndex latest_starts_;  // Waiting tickets that start when a device is free.
  // Tickets that share a device (they generate, or go between slices), or that have no deadline of
  // their own.
  TimeIndex latest_joins_;
  TimeIndex deadlines_;             // Expected and running tickets.
  std::vector<Departure> evicted_;  // Not reported yet.
  std::vector<Lane> lanes_;
  absl::Time last_progress_;
  double owed_ = 0;  // Seconds that batches in turn are to have before an aged one has another.
};

}  // namespace longview::server
