// Several devices behind one queue: which of them takes what, and what is left when one is lost.
#include <algorithm>
#include <limits>
#include <utility>

#include "server/scheduler/scheduler.h"

namespace longview::server {

bool Scheduler::MayServe(const Lane& lane, const Ticket& ticket) {
  return !lane.lost && (ticket.lane < 0 || ticket.lane == lane.number);
}

std::vector<const Lane*> Scheduler::LanesFor(const Ticket& ticket) const {
  std::vector<const Lane*> lanes;
  for (const Lane& lane : lanes_) {
    if (MayServe(lane, ticket)) lanes.push_back(&lane);
  }
  return lanes;
}

int Scheduler::AliveLanes() const {
  return static_cast<int>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.lost; }));
}

double Scheduler::QueueLimit() const { return options_.max_queue_seconds * AliveLanes(); }

double Scheduler::RoomBesideDocuments(const Ticket& ticket) const {
  double held = std::numeric_limits<double>::infinity();
  for (const Lane* lane : LanesFor(ticket)) held = std::min(held, lane->held);
  return options_.memory_bytes - held;
}

bool Scheduler::Fits(const Lane& lane, const Ticket& ticket) const {
  return options_.memory_bytes <= 0 ||
         lane.reserved + lane.held + ticket.bytes <= options_.memory_bytes;
}

bool Scheduler::HasMostRoom(const Lane& lane, const Ticket& ticket) const {
  // Ties go to the first lane.
  const auto order = [](const Lane& l) { return std::pair(l.reserved + l.held, l.number); };
  const std::vector<const Lane*> lanes = LanesFor(ticket);
  return std::none_of(lanes.begin(), lanes.end(),
                      [&](const Lane* other) { return order(*other) < order(lane); });
}

bool Scheduler::FitWithAllThatWait(const Lane& lane, const Ticket* ticket) const {
  // Waiting work spreads out over the lanes.
  const double share = 1.0 / AliveLanes();
  const double generating = static_cast<double>(lane.running_set.size()) +
                            share * static_cast<double>(queue_.generating());
  const int most = options_.max_generating - (ticket != nullptr ? 1 : 0);
  if (generating >= most + 1) return false;
  const double bytes = lane.reserved + lane.held + share * queue_.generating_bytes() +
                       (ticket != nullptr ? ticket->bytes : 0);
  return options_.memory_bytes <= 0 || bytes <= options_.memory_bytes;
}

bool Scheduler::StartsAtOnce(const Ticket& ticket) const {
  if (!ticket.generates()) return false;
  const std::vector<const Lane*> lanes = LanesFor(ticket);
  return std::any_of(lanes.begin(), lanes.end(),
                     [&](const Lane* lane) { return FitWithAllThatWait(*lane, &ticket); });
}

double Scheduler::SharedSeconds() const {
  const bool all_start = std::all_of(lanes_.begin(), lanes_.end(), [this](const Lane& lane) {
    return lane.lost || FitWithAllThatWait(lane, nullptr);
  });
  return all_start ? queue_.decode_seconds() : 0;
}

double Scheduler::LoadOf(const Lane& lane) const {
  double seconds = lane.running_set.LeftSeconds() + lane.BusySeconds(clock_.Now());
  for (const auto& [id, ticket] : lane.joining) seconds += ticket.seconds;
  return seconds;
}

bool Scheduler::TakesGenerating(const Lane& lane, const Ticket& ticket) const {
  const size_t idle = lane.running_set.waiting() + lane.joining.size();
  const size_t members = lane.running_set.size() + lane.joining.size();
  return MayServe(lane, ticket) && !lane.yielded && Fits(lane, ticket) && idle < kMaxIdle &&
         !PromptInFront(lane, ticket) && members < static_cast<size_t>(options_.max_generating);
}

bool Scheduler::BetterElsewhere(const Lane& lane, const Ticket& ticket) const {
  if (lanes_.size() == 1) return false;
  const double load = LoadOf(lane);
  return std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& other) {
    return LoadOf(other) < load && TakesGenerating(other, ticket);
  });
}

int Scheduler::OthersFree(const Lane& lane) const {
  return static_cast<int>(std::count_if(lanes_.begin(), lanes_.end(), [&](const Lane& other) {
    return &other != &lane && !other.lost && !other.yielded && !other.running() &&
           other.running_set.empty();
  }));
}

double Scheduler::BatchBudget(const Lane& lane) const {
  const double waiting = queue_.seconds();
  const double most =
      std::max(options_.batch_seconds, std::min(options_.full_batch_seconds, waiting / 2));
  const int others = OthersFree(lane);
  return others == 0 ? most : std::min(most, waiting / (1 + others));
}

void Scheduler::JoinsChanged() {
  for (Lane& lane : lanes_) lane.joins_changed = true;
}

bool Scheduler::running() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.running(); });
}

bool Scheduler::HasWork(int lane) const {
  return (waiting() && !LaneAt(lane).lost) || HasOwnWork(lane);
}

bool Scheduler::HasOwnWork(int lane) const {
  return !LaneAt(lane).running_set.empty() || !LaneAt(lane).leaving.empty();
}

bool Scheduler::HasWork() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [this](const Lane& lane) { return HasWork(lane.number); });
}

double Scheduler::InterTokenCeiling() const {
  double ceiling = 0;
  for (const Lane& lane : lanes_) ceiling = std::max(ceiling, CeilingOf(lane));
  return ceiling;
}

std::optional<int> Scheduler::OpenDocument() {
  Lane* best = nullptr;
  const auto order = [](const Lane& lane) { return std::pair(lane.held, lane.documents); };
  for (Lane& lane : lanes_) {
    if (!lane.lost && (best == nullptr || order(lane) < order(*best))) best = &lane;
  }
  if (best == nullptr) return std::nullopt;
  ++best->documents;
  return best->number;
}

void Scheduler::CloseDocument(uint64_t key, int lane) {
  --LaneAt(lane).documents;
  Hold(key, 0, lane);
}

void Scheduler::Lose(int number) {
  Lane& lane = LaneAt(number);
  lane.lost = true;
  lane.leaving.clear();
  for (const TicketId id : lane.running_set.Members()) EndGenerating(id, lane);
  lane.holds.clear();
  lane.held = 0;
  JoinsChanged();
  Evict([this](const Ticket& ticket) { return LanesFor(ticket).empty(); }, /*memory=*/false);
}

void Scheduler::Evict(absl::FunctionRef<bool(const Ticket&)> stuck, bool memory) {
  std::vector<TicketId> out;
  for (const auto& [id, entry] : entries_) {
    if (entry.stage != Stage::kWaiting || (memory && !entry.generates)) continue;
    if (stuck(*queue_.Find(id))) out.push_back(id);
  }
  for (const TicketId id : out) {
    RemoveWaiting(id);
    evicted_.push_back({id, false, memory, !memory});
  }
}

}  // namespace longview::server
