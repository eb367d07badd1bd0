// How the linears of a model are packed when it is loaded.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "models/dense/compute.h"

namespace longview::models {

// Hears how far int8 products of a linear are from those of the compute type. Called by the threads
// that run the model, one call at a time for a linear.
class Int8Observer {
 public:
  virtual ~Int8Observer() = default;
  // Sums of squares over a panel: of the products, and of what int8 makes of them less these.
  virtual void Observe(const std::string& linear, double signal, double noise) = 0;
};

// The linears of an int8 model: all that operations use (ops/weight.h) but those named in `kept`.
// One per load, used by the thread that loads.
class Int8Linears {
 public:
  explicit Int8Linears(std::vector<std::string> kept = {}) : kept_(kept.begin(), kept.end()) {}

  // Whether the linear `name` is int8; counts it.
  bool Takes(const std::string& name) {
    if (kept_.contains(name)) {
      found_.insert(name);
      return false;
    }
    ++taken_;
    return true;
  }

  int taken() const { return taken_; }  // Number of int8 linears.
  const std::set<std::string>& kept() const { return kept_; }
  // Names of `kept` that the model has no linear of.
  std::vector<std::string> Unknown() const {
    std::vector<std::string> unknown;
    for (const std::string& name : kept_) {
      if (!found_.contains(name)) unknown.push_back(name);
    }
    return unknown;
  }

  // Not null: linears are packed in both types, compute in the compute type and tell the observer,
  // which outlives the model.
  Int8Observer* observer = nullptr;

 private:
  const std::set<std::string> kept_;
  std::set<std::string> found_;
  int taken_ = 0;
};

struct WeightFormat {
  // Implicit: most linears are of the compute type alone.
  WeightFormat(Compute compute, Int8Linears* int8 = nullptr) : compute(compute), int8(int8) {}

  Compute compute;
  Int8Linears* int8;  // Borrowed for the load; null: none.
};

}  // namespace longview::models
