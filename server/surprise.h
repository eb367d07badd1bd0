// The last line against what should not happen: whatever a model throws becomes a status.
#pragma once

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longview::server {

// Calls `function`, which returns an absl::Status or StatusOr; INTERNAL if it throws.
template <typename Function>
auto Guarded(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("exception: ") + error.what());
  } catch (...) {
    return absl::InternalError("exception of unknown type");
  }
}

// A model may refuse a request as it likes; any other status from it is a bug of ours.
inline absl::Status RefusalOrInternal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
      return status;
    default:
      return absl::InternalError(status.ToString());
  }
}

}  // namespace longview::server
