// A call on pairs of texts: what goes in and what comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/calls/call_totals.h"
#include "server/metrics/metrics.h"

namespace longview::server {

struct ScoreRequest {
  std::string model;
  // The texts of the pairs: one `second` for each `first`, or for each of them the only `first`.
  std::vector<std::string> first, second;
  std::optional<bool> truncate;
  std::optional<int32_t> truncate_prompt_tokens;
  bool raw_scores = false;  // Logits instead of the model's scores.
  // The caller's names of `second` and `first`; static storage.
  std::string_view field, first_field = "text";
};

struct ScoreAnswer {
  ModelLabels model;
  std::vector<float> scores;  // In order.
  CallTotals totals;
};

}  // namespace longview::server
