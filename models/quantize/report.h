// The report of `longview quantize`, for a person.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/quantize/damage.h"
#include "models/quantize/verdict.h"

namespace longview::models {

// A form of the model, measured.
struct Trial {
  std::vector<Metric> metrics;  // Beside fp32; of fp32 itself none.
  double seconds = 0;           // An input takes, on average.
  double bytes = 0;             // Weights in memory.
};

struct QuantizeFindings {
  std::string model;  // "longformer, text-classification"
  size_t inputs = 0;
  std::vector<std::string> notes;
  Trial fp32;
  std::optional<Trial> bf16;  // Unset: the CPU does not multiply it natively.
  Trial int8;                 // All linears.
  std::optional<Trial> chosen;
  std::string beside;              // The type of what is kept: "fp32", "bf16".
  size_t linears = 0;              // All that could be int8; 0 where nothing is kept.
  std::vector<LinearDamage> kept;  // The worst first.
};

std::string ReportText(const QuantizeFindings& findings);

}  // namespace longview::models
