#include "server/cost_history.h"

#include <algorithm>
#include <cmath>

namespace longview::server {
namespace {

// Of an older request's say, what is left after another one.
constexpr double kMemory = 0.98;
// How much of the usual cost is expected.
constexpr double kCaution = 0.5;
// The predicted work that the pace looks back on, and how slow a machine may seem.
constexpr double kPaceSeconds = 1;
constexpr double kSlowest = 10;
// In this time most of it is forgotten.
constexpr double kForgetSeconds = 20;

}  // namespace

void CostHistory::Prepared(size_t bytes, double predicted_seconds) {
  bytes_ = kMemory * bytes_ + static_cast<double>(bytes);
  seconds_ = kMemory * seconds_ + predicted_seconds;
  dearest_ = std::max(kMemory * dearest_, predicted_seconds);
}

double CostHistory::PaceAt(absl::Time now) const {
  const double idle = absl::ToDoubleSeconds(now - computed_);
  return 1 + (pace_ - 1) * std::exp(-std::max(0.0, idle) / kForgetSeconds);
}

void CostHistory::Computed(double predicted_seconds, double seconds, absl::Time now) {
  // One batch that hung says little about the next.
  const double believed = std::min(seconds, kSlowest * predicted_seconds);
  const double before = PaceAt(now - absl::Seconds(seconds));
  const double pace = (kPaceSeconds * before + believed) / (kPaceSeconds + predicted_seconds);
  pace_ = std::clamp(pace, 1.0, kSlowest);
  computed_ = now;
}

double CostHistory::Expected(size_t bytes) const {
  if (bytes_ == 0) return 0;
  return kCaution * std::min(dearest_, seconds_ / bytes_ * static_cast<double>(bytes));
}

}  // namespace longview::server
