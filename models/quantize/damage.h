// Ranks linears by how much int8 damages them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "models/dense/weight_format.h"

namespace longview::models {

struct LinearDamage {
  std::string linear;
  double noise = 0;  // Root mean square of the errors of its products, over that of the products.
};

// Adds up what a model tells that computes with it (LoadOptions::int8_observer). Thread-safe.
class DamageObserver final : public Int8Observer {
 public:
  void Observe(const std::string& linear, double signal, double noise) override;

  // The worst first; equal ones by name.
  std::vector<LinearDamage> Ranking() const;

 private:
  struct Sums {
    double signal = 0, noise = 0;
  };
  mutable absl::Mutex mutex_;
  std::map<std::string, Sums> sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::models
