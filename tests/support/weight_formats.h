// Formats of weights by the names of --dtype, for tests that load a decoder without a model.
#pragma once

#include <string>

#include "models/dense/weight_format.h"

namespace longview::models {

// Returns load(the WeightFormat of `dtype`), which is "fp32", "bf16", or "int8" beside fp32.
template <typename Load>
auto LoadedIn(const std::string& dtype, Load&& load) {
  Int8Linears int8;
  const Compute compute = dtype == "bf16" ? Compute::kBf16 : Compute::kFp32;
  return load(WeightFormat(compute, dtype == "int8" ? &int8 : nullptr));
}

}  // namespace longview::models
