#include "models/quantize/damage.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace longview::models {

void DamageObserver::Observe(const std::string& linear, double signal, double noise) {
  const absl::MutexLock lock(&mutex_);
  Sums& sums = sums_[linear];
  sums.signal += signal;
  sums.noise += noise;
}

std::vector<LinearDamage> DamageObserver::Ranking() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<LinearDamage> ranking;
  for (const auto& [linear, sums] : sums_) {
    LinearDamage& damage = ranking.emplace_back(LinearDamage{linear});
    if (sums.noise == 0) continue;
    damage.noise = std::sqrt(sums.noise / sums.signal);
    // By nothing, or of what is no number.
    if (!std::isfinite(damage.noise)) damage.noise = std::numeric_limits<double>::infinity();
  }
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const auto& a, const auto& b) { return a.noise > b.noise; });
  return ranking;
}

}  // namespace longview::models
