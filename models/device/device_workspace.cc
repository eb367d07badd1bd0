#include "models/device/device_workspace.h"

#include <algorithm>

namespace longview::models {

void DeviceRunBytes::Include(const DeviceRunBytes& other) {
  lists = std::max(lists, other.lists);
  buffers = std::max(buffers, other.buffers);
  results = std::max(results, other.results);
}

}  // namespace longview::models
