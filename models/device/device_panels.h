// Panel sizes of linears on a device: models/dense/linear.h's rule with larger panels. A library
// chooses its inner loops by the number of rows, so only numbers of rows are used whose rows were
// found to have the same bits. Pure.
#pragma once

#include <array>
#include <cstdint>

namespace longview::models {

inline constexpr std::array<int, 5> kDevicePanels = {16, 64, 256, 1024, 4096};
inline constexpr int kDevicePanel = 256;           // Always used; the others if they agree with it.
inline constexpr int kMostDevicePanel = 4096;      // The largest.
inline constexpr int64_t kDevicePanelTail = 2048;  // Rows past the end that a last panel may touch.

// Bit i: kDevicePanels[i] is used.
struct DevicePanelSet {
  uint32_t bits = 1u << 2;

  bool Has(int i) const { return (bits >> i & 1u) != 0; }
  bool operator==(const DevicePanelSet&) const = default;
};

// How many rows the next panel takes when `left` rows remain: the least time per row, a launch
// costing as much as 256 rows. It reaches at most kDevicePanelTail past the end.
int NextDevicePanel(DevicePanelSet panels, int64_t left);

}  // namespace longview::models
