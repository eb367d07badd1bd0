// The generating tickets that have started on one device, and what their next steps hold.
//
// A step of a model carries the next token of every sequence that is past its prompt, and then
// as much of prompts as leaves nobody's next token late: every token is due one ceiling after the
// one before it, and a step is planned against the tokens of all models. The ceiling is the
// configured one, or twice what a step with one sequence and the smallest chunk takes where that is
// longer, or a round of next tokens and the smallest chunk: however slow the machine becomes,
// prompts that have begun go on. A ticket whose sequences would bring the sum of all decoding so
// close to the ceiling that no chunk fits beside them does not begin its prompt before others have
// left, and once it is overdue nobody behind it begins before it does. Where steps take longer than
// predicted (other processes want the cores), prompts are cut accordingly.
// Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

class RunningSet {
 public:
  explicit RunningSet(double ceiling_seconds) : configured_(ceiling_seconds) {}

  // REQUIRES: the id is not a member. `urgency` orders prompts of clients that had equally much.
  void Add(const Ticket& ticket, const StepNeed& need, absl::Time urgency, absl::Time now);
  // Takes over a member's needs after a step. REQUIRES: a member.
  void Update(TicketId id, const StepNeed& need);
  Ticket Remove(TicketId id);
  std::vector<TicketId> Members() const;
  const Ticket* Find(TicketId id) const;

  // Seconds between two tokens of a sequence that steps are planned for.
  double Ceiling() const;

  // Slack to the earliest inter-token deadline under decode-only steps; negative if missed.
  // Seconds. The model `first` goes before all others; 0 = in the order in which tokens are due.
  double Spare(absl::Time now, ModelId first = 0) const;

  // Seconds of one decode step of every model, at the recent pace.
  double RoundSeconds() const;
  // Number of models with sequences past their prompt.
  int Decoding() const;

  // The model whose tokens are due first, of those with sequences past their prompt.
  std::optional<ModelId> DueFirst() const;

  // A decode-only step: the next token of every sequence past its prompt.
  Batch PlanDecode(ModelId model) const;
  // A decode step with prefill chunks, in rising order of `lead` (of a ticket's client), then
  // urgency; cut to `share` of the ceiling. Empty if nothing can be granted.
  Batch PlanFull(ModelId model, absl::Time now, double share,
                 absl::FunctionRef<double(const Ticket&)> lead);

  // Divides the `seconds` that a planned step took among its tickets, in their order.
  std::vector<double> Split(const Batch& step, double seconds);
  // Notes that the model's sequences got their tokens now: the next ones are due a ceiling later.
  void Stepped(ModelId model, absl::Time now);

  // Models with members.
  std::vector<ModelId> Models() const;
  bool empty() const { return members_.empty(); }
  size_t size() const { return members_.size(); }
  size_t waiting() const { return waiting_; }  // Members that have not begun their prompt.

  // Predicted seconds that members still take.
  double LeftSeconds() const;
  // Calls visit(ticket, urgency, seconds) for the members that have not read their whole prompt;
  // `seconds` is what is left to read.
  using PromptVisit = absl::FunctionRef<void(const Ticket&, absl::Time urgency, double seconds)>;
  void ForEachPrompt(PromptVisit visit) const;
  // Seconds of prompts of a client and model that have not begun.
  double IdlePrompts(const Ticket& like) const;

 private:
  struct Member {
    Ticket ticket;
    StepNeed need;
    absl::Time urgency;
    double left = 0;     // Seconds behind the prompt, at a pace of 1.
    bool begun = false;  // Some of its prompt was granted, or it has none left.
    bool decoding() const { return need.prefill == 0; }
  };
  struct Group {
    std::vector<TicketId> ids;  // In the order they came.
    double step_seconds = 0;
    int prefill_alignment = 0;
    int decoding = 0;
    double decode_seconds = 0;     // Sum over all that decode.
    double committed_seconds = 0;  // Sum over all that have begun.
    double longest_decode = 0;     // The most any ticket took.
    double prefill_seconds = 0;    // The most that reading one token took.
    double left = 0;               // Sum of Member::left.
    double unread = 0;             // Seconds of prompts that are still to be read.
    double pace = 1;       // Measured over predicted seconds of decoding, from the last need.
    double read_pace = 1;  // Measured over predicted seconds of prefill, likewise.
    absl::Time last_tokens;
    double Cost() const { return pace * (step_seconds + decode_seconds); }
    double SmallestChunk() const { return read_pace * prefill_alignment * prefill_seconds; }
  };

  void Count(Group& group, const Member& member, int sign);
  static void Note(Group& group, const StepNeed& need);
  // Seconds of decoding per round of all models, if all that have begun decode.
  double Committed() const;
  void Begin(Group& group, Member& member);
  bool MayBegin(const Group& group, const Member& member) const;

  const double configured_;
  std::map<ModelId, Group> groups_;  // None empty.
  absl::flat_hash_map<TicketId, Member> members_;
  size_t waiting_ = 0;
  // Recent measured over predicted seconds of steps, where that is more than the paces of needs
  // have followed yet; at least 1, as prompts are cut by it and predictions are not made with it.
  double pace_ = 1;
};

}  // namespace longview::server
