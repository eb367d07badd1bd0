// The extensions of Triton's protocol that are not served, and what to use instead.
// Thread-safe: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace longview::server {

// The methods of inference.GRPCInferenceService that Triton's clients know and no extension here
// has.
std::span<const char* const> UnservedMethods();

// UNIMPLEMENTED with what to use instead. REQUIRES: one of UnservedMethods.
absl::Status UnservedMethod(std::string_view method);

// Says what to use instead of a path below /v2 that belongs to such an extension; "" for others.
std::string_view InsteadOfPath(std::string_view path);

}  // namespace longview::server
