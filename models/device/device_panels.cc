#include "models/device/device_panels.h"

#include <algorithm>

namespace longview::models {
namespace {

constexpr double kLaunchRows = 256;

}  // namespace

int NextDevicePanel(DevicePanelSet panels, int64_t left) {
  int best = kDevicePanel;
  double least = 0;
  for (size_t i = 0; i < kDevicePanels.size(); ++i) {
    const int rows = kDevicePanels[i];
    if (!panels.Has(static_cast<int>(i)) || rows - left > kDevicePanelTail) continue;
    const double per_row =
        (rows + kLaunchRows) / static_cast<double>(std::min<int64_t>(rows, left));
    if (least > 0 && per_row >= least) continue;
    least = per_row;
    best = rows;
  }
  return best;
}

}  // namespace longview::models
