// The memory of requests that wait to be prepared.
// Thread-safe: pure functions.
#pragma once

#include <cstddef>

#include "models/model.h"

namespace longview::server {

// Bytes that a request holds while it waits to be prepared.
size_t RequestBytes(const models::Request& request);

// Bytes that Prepare works with beside the request, at most.
size_t PrepareScratch(const models::Request& request);

}  // namespace longview::server
