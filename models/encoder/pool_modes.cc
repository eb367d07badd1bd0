#include "models/encoder/pool_modes.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/encoder/draft.h"

namespace longview::models {

absl::StatusOr<std::vector<PoolMode>> PoolModesOf(const EncoderFrontEnd& front,
                                                  const Request& request) {
  const SentenceModules* modules = front.modules();
  const std::string& name = request.pooling;
  if (name.empty()) {
    return modules != nullptr && !front.own_pooling ? modules->pooling : std::vector<PoolMode>();
  }
  const std::optional<PoolMode> mode = ParsePoolMode(name);
  if (!mode) {
    return BadRequest("pooling", absl::StrCat("\"", name.substr(0, 64),
                                              "\" is not one of cls, mean, max, lasttoken, "
                                              "mean_sqrt_len_tokens, weightedmean, pooler, none"));
  }
  if (modules != nullptr && modules->HasDense(/*tokens=*/false)) {
    return BadRequest("pooling", "a Dense module follows this model's own pooling");
  }
  return std::vector<PoolMode>{*mode};
}

absl::StatusOr<bool> PoolsParts(const EncoderFrontEnd& front, const Request& request) {
  if (request.pooling == "pooler" || request.pooling == "none") return false;
  const absl::StatusOr<std::vector<PoolMode>> modes = PoolModesOf(front, request);
  if (!modes.ok()) return modes.status();
  if (modes->empty()) return front.pooling == Pooling::kMean;
  return modes->size() == 1 &&
         (modes->front() == PoolMode::kMean || modes->front() == PoolMode::kMax);
}

}  // namespace longview::models
