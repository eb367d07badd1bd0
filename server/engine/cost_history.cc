#include "server/engine/cost_history.h"

#include <algorithm>

namespace longview::server {
namespace {

// The weight that remains of an older request after each new one.
constexpr double kMemory = 0.98;
// Part of the usual cost that is expected of a new request, so that few are refused wrongly.
constexpr double kCaution = 0.5;

}  // namespace

void CostHistory::Prepared(size_t bytes, double predicted_seconds, double prompt_seconds) {
  bytes_ = kMemory * bytes_ + static_cast<double>(bytes);
  seconds_ = kMemory * seconds_ + predicted_seconds;
  prompt_seconds_ = kMemory * prompt_seconds_ + prompt_seconds;
  dearest_ = std::max(kMemory * dearest_, predicted_seconds);
}

double CostHistory::Expected(size_t bytes) const {
  if (bytes_ == 0) return 0;
  return kCaution * std::min(dearest_, seconds_ / bytes_ * static_cast<double>(bytes));
}

}  // namespace longview::server
