#include "models/encoder/rules.h"

namespace longview::models {

absl::Status SequenceRules::MarkDefaultGlobals(const std::string&, Task, EncoderSequence&) const {
  return absl::OkStatus();
}

}  // namespace longview::models
