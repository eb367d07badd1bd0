#include "server/scheduler/running_set.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace longview::server {
namespace {

// Weight of the latest step in the running average of the pace.
constexpr double kFollow = 0.2;
// Upper bound of the pace: one step that hung must not stop prompts for long.
constexpr double kSlowest = 10;

}  // namespace

void RunningSet::Count(Group& group, const Member& member, int sign) {
  if (member.decoding()) {
    group.decoding += sign;
    group.decode_seconds += sign * member.need.decode_seconds;
    if (group.decoding == 0) group.decode_seconds = 0;
  }
  group.unread += sign * member.need.prompt_seconds;
  if (member.begun) {
    group.committed_seconds += sign * member.need.decode_seconds;
  } else {
    waiting_ += static_cast<size_t>(sign);
  }
}

void RunningSet::Note(Group& group, const StepNeed& need) {
  group.longest_decode = std::max(group.longest_decode, need.decode_seconds);
  group.prefill_seconds = std::max(group.prefill_seconds, need.prefill_seconds);
  group.pace = need.pace;
  group.read_pace = need.read_pace;
}

void RunningSet::Add(const Ticket& ticket, const StepNeed& need, absl::Time urgency,
                     absl::Time now) {
  Group& group = groups_[ticket.model];
  group.ids.push_back(ticket.id);
  group.step_seconds = ticket.step_seconds;
  group.prefill_alignment = ticket.prefill_alignment;
  if (group.decoding == 0) group.last_tokens = now;
  Note(group, need);
  const double left = std::max(0.0, ticket.seconds - ticket.prompt_seconds) / need.pace;
  Member member{ticket, need, urgency, left, need.prefill == 0};
  Count(group, member, +1);
  group.left += member.left;
  members_.emplace(ticket.id, std::move(member));
}

void RunningSet::Update(TicketId id, const StepNeed& need) {
  Member& member = members_.at(id);
  Group& group = groups_.at(member.ticket.model);
  Count(group, member, -1);
  member.need = need;
  if (need.prefill == 0) member.begun = true;
  Note(group, need);
  Count(group, member, +1);
}

Ticket RunningSet::Remove(TicketId id) {
  auto node = members_.extract(id);
  Member& member = node.mapped();
  const auto group = groups_.find(member.ticket.model);
  Count(group->second, member, -1);
  group->second.left -= member.left;
  std::erase(group->second.ids, id);
  if (group->second.ids.empty()) groups_.erase(group);
  return std::move(member.ticket);
}

std::vector<TicketId> RunningSet::Members() const {
  std::vector<TicketId> ids;
  for (const auto& [id, member] : members_) ids.push_back(id);
  return ids;
}

const Ticket* RunningSet::Find(TicketId id) const {
  const auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second.ticket;
}

double RunningSet::Ceiling() const {
  double ceiling = configured_, round = 0, smallest_chunk = 0;
  for (const auto& [model, group] : groups_) {
    const double least =
        group.pace * (group.step_seconds + group.longest_decode) + group.SmallestChunk();
    ceiling = std::max(ceiling, 2 * least);
    smallest_chunk = std::max(smallest_chunk, group.SmallestChunk());
    if (group.decoding > 0) round += group.Cost();
  }
  return std::max(ceiling, round + smallest_chunk);
}

double RunningSet::Spare(absl::Time now, ModelId first) const {
  const double ceiling = Ceiling();
  // Earliest due first: the slack is the least over all models of (due - now) less the decode steps
  // that go before, its own included.
  std::vector<std::tuple<bool, absl::Time, double>> dues;  // Not first, last tokens, cost.
  double ahead = 0;
  double spare = kInfinity;
  for (const auto& [model, group] : groups_) {
    if (group.decoding > 0) {
      dues.emplace_back(model != first, group.last_tokens, group.Cost());
    } else if (model == first) {
      ahead = group.pace * group.step_seconds;
    }
  }
  std::sort(dues.begin(), dues.end());
  for (const auto& [later, last, cost] : dues) {
    ahead += cost;
    spare = std::min(spare, absl::ToDoubleSeconds(last - now) + ceiling - ahead);
  }
  return spare;
}

double RunningSet::RoundSeconds() const {
  double seconds = 0;
  for (const auto& [model, group] : groups_) {
    if (group.decoding > 0) seconds += group.Cost();
  }
  return seconds * std::max(1.0, pace_);
}

int RunningSet::Decoding() const {
  return static_cast<int>(std::count_if(
      groups_.begin(), groups_.end(), [](const auto& group) { return group.second.decoding > 0; }));
}

std::optional<ModelId> RunningSet::DueFirst() const {
  std::optional<ModelId> first;
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& [model, group] : groups_) {
    if (group.decoding == 0 || group.last_tokens >= earliest) continue;
    first = model;
    earliest = group.last_tokens;
  }
  return first;
}

Batch RunningSet::PlanDecode(ModelId model) const {
  const Group& group = groups_.at(model);
  Batch step;
  step.model = model;
  step.kind = TurnKind::kStep;
  step.seconds = group.Cost();
  for (const TicketId id : group.ids) {
    if (members_.at(id).decoding()) step.tickets.push_back(id);
  }
  step.prefill.assign(step.tickets.size(), 0);
  return step;
}

double RunningSet::Committed() const {
  double committed = 0;
  for (const auto& [model, group] : groups_) {
    committed += group.pace * (group.step_seconds + group.committed_seconds);
  }
  return committed;
}

bool RunningSet::MayBegin(const Group& group, const Member& member) const {
  if (member.begun || waiting_ == members_.size()) return true;
  const double decode = group.pace * member.need.decode_seconds;
  return Committed() + decode + group.SmallestChunk() <= Ceiling();
}

void RunningSet::Begin(Group& group, Member& member) {
  if (member.begun) return;
  Count(group, member, -1);
  member.begun = true;
  Count(group, member, +1);
}

Batch RunningSet::PlanFull(ModelId model, absl::Time now, double share,
                           absl::FunctionRef<double(const Ticket&)> lead) {
  Batch step = PlanDecode(model);
  Group& group = groups_.at(model);
  if (group.decoding == static_cast<int>(group.ids.size())) return step;
  std::vector<std::tuple<double, absl::Time, TicketId>> order;
  for (const TicketId id : group.ids) {
    const Member& member = members_.at(id);
    if (!member.decoding()) order.emplace_back(lead(member.ticket), member.urgency, id);
  }
  std::sort(order.begin(), order.end());

  // At least the smallest chunk, so that prompts go on however many share the device; but never so
  // much that a token is late.
  double budget = std::max(group.SmallestChunk(), (Ceiling() - Committed()) * share / pace_);
  budget = std::min(budget, Spare(now, model));
  bool held = false;  // An overdue ticket cannot begin yet, so nobody behind it may.
  for (const auto& [client_lead, urgency, id] : order) {
    Member& member = members_.at(id);
    const double per_token = group.read_pace * member.need.prefill_seconds;
    // Rounding must not cost a chunk that the budget was made for.
    const double tokens = per_token > 0 ? budget / per_token * (1 + 1e-9) : kInfinity;
    int granted = member.need.prefill;
    if (tokens < granted) {
      granted = static_cast<int>(std::max(0.0, tokens)) / group.prefill_alignment *
                group.prefill_alignment;
    }
    if (granted == 0) break;
    if (!member.begun && (held || !MayBegin(group, member))) {
      held = held || urgency <= now;
      continue;
    }
    Begin(group, member);
    step.tickets.push_back(id);
    step.prefill.push_back(granted);
    step.seconds += granted * per_token;
    budget -= granted * per_token;
  }
  return step;
}

std::vector<double> RunningSet::Split(const Batch& step, double seconds) {
  Group& group = groups_.at(step.model);
  if (step.seconds > 0) {
    const double pace = (1 - kFollow) * pace_ + kFollow * seconds / step.seconds;
    pace_ = std::clamp(pace, 1.0, kSlowest);
  }
  const double each = group.step_seconds / static_cast<double>(step.tickets.size());
  std::vector<double> parts;
  double sum = 0;
  for (size_t i = 0; i < step.tickets.size(); ++i) {
    Member& member = members_.at(step.tickets[i]);
    const int prefill = step.prefill[i];
    // The need says what is left of a prompt.
    const double behind =
        std::min(each + (prefill > 0 ? 0 : member.need.decode_seconds), member.left);
    group.left -= behind;
    member.left -= behind;
    const double grant = prefill > 0 ? group.read_pace * prefill * member.need.prefill_seconds
                                     : group.pace * member.need.decode_seconds;
    const double part = group.pace * each + grant;
    parts.push_back(part);
    sum += part;
  }
  for (double& part : parts) {
    part = sum > 0 ? part * seconds / sum : seconds / static_cast<double>(parts.size());
  }
  return parts;
}

void RunningSet::Stepped(ModelId model, absl::Time now) {
  const auto group = groups_.find(model);
  if (group != groups_.end()) group->second.last_tokens = now;
}

double RunningSet::LeftSeconds() const {
  double seconds = 0;
  for (const auto& [model, group] : groups_) {
    seconds += group.read_pace * group.unread + group.pace * group.left;
  }
  return std::max(0.0, seconds);
}

void RunningSet::ForEachPrompt(PromptVisit visit) const {
  for (const auto& [model, group] : groups_) {
    if (group.decoding == static_cast<int>(group.ids.size())) continue;
    for (const TicketId id : group.ids) {
      const Member& member = members_.at(id);
      if (member.decoding()) continue;
      visit(member.ticket, member.urgency, group.read_pace * member.need.prompt_seconds);
    }
  }
}

double RunningSet::IdlePrompts(const Ticket& like) const {
  double seconds = 0;
  const auto group = groups_.find(like.model);
  if (waiting_ == 0 || group == groups_.end()) return seconds;
  for (const TicketId id : group->second.ids) {
    const Member& member = members_.at(id);
    if (member.begun || member.ticket.client != like.client) continue;
    seconds += group->second.read_pace * member.need.prompt_seconds;
  }
  return seconds;
}

std::vector<ModelId> RunningSet::Models() const {
  std::vector<ModelId> models;
  for (const auto& [model, group] : groups_) models.push_back(model);
  return models;
}

}  // namespace longview::server
