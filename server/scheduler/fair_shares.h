// The bookkeeping of start-time fair queueing (Goyal, Vin, Cheng 1996).
//
// Every key has a virtual time, the work it was given divided by its weight. Serving whoever
// is lowest keeps any two keys that always want work within one piece of work of each other.
// A key that had nothing waiting for a while does not save up: it comes back at the floor,
// the lowest time among those that want work.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace longview::server {

template <typename Key>
class FairShares {
 public:
  // The key wants work from now on.
  void Wake(const Key& key) {
    auto [it, inserted] = times_.try_emplace(key, floor_);
    if (!inserted) {
      asleep_.erase({it->second, key});
      it->second = std::max(it->second, floor_);
    }
    awake_.insert({it->second, key});
  }

  // The key wants nothing any more. REQUIRES: awake.
  void Sleep(const Key& key) {
    const double time = times_.at(key);
    awake_.erase({time, key});
    asleep_.insert({time, key});
    Raise();
  }

  // REQUIRES: awake.
  void Charge(const Key& key, double work) {
    double& time = times_.at(key);
    awake_.erase({time, key});
    time += work;
    awake_.insert({time, key});
    Raise();
  }

  // The key's virtual time; for one that is asleep, the time it would wake at.
  double TimeOf(const Key& key) const {
    const auto it = times_.find(key);
    return it == times_.end() ? floor_ : std::max(it->second, floor_);
  }

  double floor() const { return floor_; }

  // The keys that want work, lowest virtual time first.
  const std::set<std::pair<double, Key>>& awake() const { return awake_; }

  // Keys remembered; those asleep below the floor are forgotten.
  size_t size() const { return times_.size(); }

 private:
  void Raise() {
    if (!awake_.empty()) {
      floor_ = std::max(floor_, awake_.begin()->first);
    } else if (!asleep_.empty()) {
      floor_ = std::max(floor_, asleep_.rbegin()->first);
    }
    while (!asleep_.empty() && asleep_.begin()->first <= floor_) {
      times_.erase(asleep_.begin()->second);
      asleep_.erase(asleep_.begin());
    }
  }

  double floor_ = 0;
  std::map<Key, double> times_;
  std::set<std::pair<double, Key>> awake_;
  std::set<std::pair<double, Key>> asleep_;
};

}  // namespace longview::server
