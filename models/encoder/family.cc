#include "models/encoder/family.h"

namespace longview::models {

absl::Status EncoderFamily::MarkDefaultGlobals(const std::string&, Task, EncoderSequence&) const {
  return absl::OkStatus();
}

}  // namespace longview::models
