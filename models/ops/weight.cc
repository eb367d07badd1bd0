#include "models/ops/weight.h"

#include <cstring>

#include "models/checkpoint/convert.h"

namespace longview::models {

void Table::CopyRow(int64_t row, float* to) const {
  const auto width = static_cast<size_t>(width_);
  if (stored_ != nullptr) {
    CopyFloat32(*stored_, row * width_, {to, width});
  } else {
    std::memcpy(to, values_.data() + row * width_, width * sizeof(float));
  }
}

}  // namespace longview::models
