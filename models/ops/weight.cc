#include "models/ops/weight.h"

#include <cstring>

#include "models/checkpoint/convert.h"

namespace longview::models {

int64_t ScratchColumns(const Weight& weight) {
  if (!weight.host) return 0;
  const int64_t element = ElementBytes(weight.host->linear.compute());
  return (weight.host->linear.RowScratchBytes() + element - 1) / element;
}

void Table::CopyRow(int64_t row, float* to) const {
  const auto width = static_cast<size_t>(width_);
  if (stored_ != nullptr) {
    CopyFloat32(*stored_, row * width_, {to, width});
  } else {
    std::memcpy(to, values_.data() + row * width_, width * sizeof(float));
  }
}

}  // namespace longview::models
