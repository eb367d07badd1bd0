#include "models/ops/weight.h"

#include <cstring>

#include "models/checkpoint/convert.h"

namespace longview::models {

int64_t QuantizedColumns(const Weight& weight) {
  if (!weight.host || !weight.host->linear.int8()) return 0;
  // 16-bit integers at most, and a scale a row.
  return weight.in + 16;
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
