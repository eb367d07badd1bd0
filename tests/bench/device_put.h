// The host's bytes into a device's memory, for what fills caches there.
#pragma once

#include "models/device/device.h"
#include "tests/bench/random_cache.h"

namespace longview::bench {

// Through pinned memory; waits for each. Borrows the device. Throws DeviceError.
PutBytes PutOnDevice(const models::Device& device);

}  // namespace longview::bench
