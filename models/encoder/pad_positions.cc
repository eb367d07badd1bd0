#include "models/encoder/pad_positions.h"

#include "absl/strings/str_cat.h"
#include "models/encoder/draft.h"

namespace longview::models {

absl::Status PlaceBehindPad(int pad, int positions, const std::string& field,
                            EncoderSequence& sequence) {
  int32_t position = pad;
  for (const int32_t id : sequence.ids) {
    if (id != pad) ++position;
    sequence.positions.push_back(id == pad ? pad : position);
  }
  if (position < positions) return absl::OkStatus();
  return BadRequest(
      field, absl::StrCat("token position ", position, " is beyond the table of ", positions));
}

}  // namespace longview::models
