// Judges a request before its cost is known.
#include <algorithm>

#include "server/scheduler/scheduler.h"

namespace longview::server {

Admission Scheduler::JudgeExpected(const Ticket& ticket) const {
  Ticket certain = ticket;
  certain.seconds = certain.prompt_seconds = 0;
  Admission result = JudgeWithRoom(certain, 0);
  if (result.verdict != Verdict::kAdmitted && result.verdict != Verdict::kQueueFull) return result;

  // Expected work counts for no more than known work, and not among the prompts.
  const Bound bound = BoundOf(ticket);
  const bool prompts = bound.measure == &Ticket::prompt_seconds;
  const double known = queue_.Seconds(bound.measure) + bound.started;
  certain.seconds = std::min(ticket.seconds, result.wait_seconds);
  const double unknown = prompts ? 0 : std::min(known, expected_.seconds() + ticket.seconds);
  const double others = std::max(0.0, unknown - certain.seconds);
  result = JudgeWithRoom(certain, -others);
  if (result.verdict != Verdict::kQueueFull) return result;

  // A client with less waiting may displace others once the cost is known, so it is let in here.
  const double counts = certain.*bound.measure;
  const double over = std::max(0.0, known + counts - QueueLimit());
  const double own = queue_.ClientSeconds(ticket.client, bound.measure) +
                     (prompts ? 0 : expected_.OfClient(ticket.client));
  const bool has_less = queue_.LongestBeside(ticket.client, bound.measure) - over >= own + counts;
  if (!has_less) return result;
  Admission let_in;
  let_in.wait_seconds = result.wait_seconds;
  return let_in;
}

Admission Scheduler::Expect(const Ticket& ticket) {
  Admission result = JudgeExpected(ticket);
  if (result.verdict != Verdict::kAdmitted) return result;
  entries_.emplace(ticket.id,
                   Entry{Stage::kExpected, ticket.model, ticket.deadline, ticket.seconds});
  if (ticket.deadline != absl::InfiniteFuture()) deadlines_.insert({ticket.deadline, ticket.id});
  expected_.Add(ticket.id, ticket.client, ticket.seconds);
  Count(ticket.model, Stage::kExpected, ticket.seconds, +1);
  return result;
}

}  // namespace longview::server
