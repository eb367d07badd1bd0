// Prompts that wait: of generating tickets in the line, and of those that have started and read
// theirs when the ones before are read.
//
// A lane reads one of its prompts, which waits no more than a batch that runs: the longest of them,
// so that short ones are not refused for a long one that they need not wait for.
#include <algorithm>

#include "server/scheduler/scheduler.h"

namespace longview::server {
namespace {

// Calls `visit` for the prompts of tickets that have started on the lane or are about to.
void ForEachPrompt(const Lane& lane, RunningSet::PromptVisit visit) {
  lane.running_set.ForEachPrompt(visit);
  for (const auto& [id, ticket] : lane.joining) {
    visit(ticket, ticket.deadline, ticket.prompt_seconds);
  }
}

}  // namespace

void Scheduler::ForEachWaitingPrompt(
    absl::FunctionRef<void(const Ticket&, double seconds)> visit) const {
  for (const Lane& lane : lanes_) {
    TicketId read = 0;
    double longest = -1;
    ForEachPrompt(lane, [&](const Ticket& ticket, absl::Time, double seconds) {
      if (seconds <= longest) return;
      longest = seconds;
      read = ticket.id;
    });
    ForEachPrompt(lane, [&](const Ticket& ticket, absl::Time, double seconds) {
      if (ticket.id != read) visit(ticket, seconds);
    });
  }
}

double Scheduler::WaitingPrompts() const {
  double seconds = 0;
  ForEachWaitingPrompt([&](const Ticket&, double left) { seconds += left; });
  return seconds;
}

double Scheduler::WaitingPromptsOf(ModelId model) const {
  double sum = 0;
  ForEachWaitingPrompt([&](const Ticket& ticket, double left) {
    if (ticket.model == model) sum += left;
  });
  return sum;
}

double Scheduler::StartedPromptsOf(const std::string& client, absl::Time until) const {
  double sum = 0;
  for (const Lane& lane : lanes_) {
    ForEachPrompt(lane, [&](const Ticket& ticket, absl::Time urgency, double left) {
      if (ticket.client == client && urgency <= until) sum += left;
    });
  }
  return sum;
}

bool Scheduler::PromptInFront(const Lane& lane, const Ticket& ticket) const {
  double seconds = lane.running_set.IdlePrompts(ticket);
  for (const auto& [id, joining] : lane.joining) {
    const bool alike = joining.client == ticket.client && joining.model == ticket.model;
    if (alike) seconds += joining.prompt_seconds;
  }
  return seconds >= options_.batch_seconds;
}

Scheduler::Bound Scheduler::BoundOf(const Ticket& ticket) const {
  Bound bound;
  if (StartsAtOnce(ticket)) {
    bound.measure = &Ticket::prompt_seconds;
    bound.started = WaitingPrompts();
    bound.applies = bound.started + queue_.Seconds(bound.measure) > 0;
    return bound;
  }
  bound.started = ticket.generates() ? WaitingPrompts() : -SharedSeconds();
  bound.applies = !queue_.empty();
  return bound;
}

}  // namespace longview::server
