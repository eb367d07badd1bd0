// Types named by every part of the plugin's table.
#pragma once

#include <cstdint>

namespace longview::kernels::cuda {

using Status = int32_t;  // 0: done.

struct Stream;  // Work of one device in order.
struct Event;   // A point of a stream.
struct Graph;   // Work recorded once, launched as one.

}  // namespace longview::kernels::cuda
