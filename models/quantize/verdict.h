// Whether a form of a model may stand for the exact one: what was measured beside what it must be.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "models/quantize/outcome.h"
#include "models/quantize/probes.h"

namespace longview::models {

struct Metric {
  std::string name;  // "top-1 agreement"
  double value = 0;  // A share, or a cosine.
  double bound = 0;
  bool at_least = true;  // Else at most.
  bool percent = true;   // How a person reads it.
  size_t count = 0;      // Texts, tokens or queries that were compared.
  std::string of = "";   // Name of the label that has the value, if one has.

  bool Holds() const { return at_least ? value >= bound : value <= bound; }
};

bool AllHold(std::span<const Metric> metrics);

// A metric for every comparison among the probes, in the order of their enumerators. `labels`: the
// model's. REQUIRES: outcomes of the probes.
std::vector<Metric> Compare(const std::vector<Probe>& probes, const std::vector<Outcome>& exact,
                            const std::vector<Outcome>& near,
                            const std::vector<std::string>& labels);

}  // namespace longview::models
