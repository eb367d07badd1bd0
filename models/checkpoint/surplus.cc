#include "models/checkpoint/surplus.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace longview::models {

absl::Status LeaveSurplusAside(const absl::Status& finished, std::vector<std::string>& notes) {
  const auto surplus = finished.GetPayload(kSurplusTensors);
  if (!surplus) return finished;
  notes.push_back(absl::StrCat("left aside: ", std::string(*surplus)));
  return absl::OkStatus();
}

}  // namespace longview::models
