// Decides what a device, or each of several equal ones (lanes), computes next: admission, batches,
// generation steps and deadlines, in predicted seconds. server/scheduler/README.md explains it.
// Policy only: no threads; callers report what happened, and time comes from the injected clock.
// Not thread-safe; DeviceQueue is the thread-safe shell.
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
  void Lose(int number);
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
    int lane = 0;          // The lane it runs on.
    size_t depth = 0;      // Index of its batch in Lane::batches.
  };
  using TimeIndex = std::set<std::pair<absl::Time, TicketId>>;
  // Most started tickets on a lane whose prompt has not begun. They reserve memory without using it
  // and have left the line, so that more of them would undo the clients' fair order. Of one client
  // and model only as many as keep the next steps busy (PromptInFront).
  static constexpr size_t kMaxIdle = 8;

  Lane& LaneAt(int lane) { return lanes_[static_cast<size_t>(lane)]; }
  const Lane& LaneAt(int lane) const { return lanes_[static_cast<size_t>(lane)]; }

  // Prompts; scheduler_prompts.cc.
  // Calls visit(ticket, seconds) for each waiting prompt of a started ticket.
  void ForEachWaitingPrompt(absl::FunctionRef<void(const Ticket&, double seconds)> visit) const;
  double WaitingPrompts() const;                 // Seconds of these prompts.
  double WaitingPromptsOf(ModelId model) const;  // Seconds of one model's.
  // Seconds of a client's started prompts as urgent as `until`, including those being read.
  double StartedPromptsOf(const std::string& client, absl::Time until) const;
  // Whether prompts of its client and model that have not begun keep the lane's next steps busy.
  bool PromptInFront(const Lane& lane, const Ticket& ticket) const;
  // The part of the queue that a ticket waits with, and that its bound counts.
  struct Bound {
    WaitingQueue::Measure measure = &Ticket::seconds;  // Counted of tickets in the line.
    // Seconds of started tickets' prompts, less those of waiting tickets that share the device.
    double started = 0;
    bool applies = false;  // Other work waits; a ticket that comes first is never refused.
  };
  Bound BoundOf(const Ticket& ticket) const;

  // The earliest time at which any device can start something else.
  absl::Time EarliestStart(absl::Time now) const;
  static absl::Time LatestStart(const Ticket& ticket);
  // `freed`: seconds of the waiting work that would leave.
  Admission JudgeWithRoom(const Ticket& ticket, double freed) const;
  Admission JudgeKnown(const Ticket& ticket) const;
  // Judges a request whose cost is not known yet; expected_admission.cc.
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
  // Room for a ticket between the slices of a batch, in seconds.
  struct NestedRoom {
    double now = 0;   // Longest ticket that may start now.
    double soon = 0;  // Longest ticket that will fit soon; shorter ones behind it must not pass it.
  };
  NestedRoom NestedRoomOf(const Lane& lane) const;
  double NestedShare(const RunningBatch& outer) const {
    return outer.task ? 1 : options_.nested_share;
  }
  // Seconds that nested batches may take in all beside `outer`: E of README.md.
  double NestedTotal(const RunningBatch& outer) const;
  // The part of NestedTotal that is free before `outer` has computed anything: a of README.md.
  double NestedAdvance(const RunningBatch& outer) const;
  // The part of NestedTotal that is free once `outer` has computed `own` seconds.
  double NestedAllowance(const RunningBatch& outer, double own) const;
  // Seconds that `outer` has to have computed before nested batches may take `nested`.
  double NestedAfter(const RunningBatch& outer, double nested) const;
  bool MayNest(const Lane& lane, const Ticket& ticket) const;
  // Seconds until the ticket may go between slices, on the lane where that is soonest; infinite if
  // it may not.
  double NestedWait(const Ticket& ticket) const;
  // Enters what the lane's batches computed into its steps_lead.
  void CountSlice(Lane& lane);
  void CountStep(Lane& lane, double seconds);

  // Choice of a lane; scheduler_lanes.cc.
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
  // Seconds of a batch of several, by what waits, which lanes that are free share.
  double BatchBudget(const Lane& lane) const;
  double LoadOf(const Lane& lane) const;
  void JoinsChanged();
  // Removes the waiting tickets that are `stuck` from the queue; Expire reports them.
  void Evict(absl::FunctionRef<bool(const Ticket&)> stuck, bool memory);

  // The turns of generating tickets; scheduler_steps.cc.
  bool Fits(const Lane& lane, const Ticket& ticket) const;
  // Whether the ticket fits beside all that wait to generate, and so starts without waiting.
  bool StartsAtOnce(const Ticket& ticket) const;
  // Whether a lane's share of all that wait to generate fits on it, and `ticket` too unless null.
  bool FitWithAllThatWait(const Lane& lane, const Ticket* ticket) const;
  // Seconds of waiting tickets that share the device with others instead of holding them up: what
  // generating ones take beyond their prompts, if they start in the next membership turn.
  double SharedSeconds() const;
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
  TimeIndex deadlines_;             // Deadlines of expected and running tickets.
  std::vector<Departure> evicted_;  // Not reported yet.
  std::vector<Lane> lanes_;
  absl::Time last_progress_;
  double owed_ = 0;  // Seconds that batches in turn are to have before an aged one has another.
};

}  // namespace longview::server
