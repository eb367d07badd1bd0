// The one place where LibTorch's exceptions become absl::Status.
//
// Only translation units that call LibTorch include it. Thread-compatible.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "c10/util/Exception.h"

namespace longview::models {

// Runs `body`; what LibTorch (or the allocator) throws becomes a status that starts with `what`.
template <typename Body>
absl::Status GuardTorch(const std::string& what, Body&& body) {
  try {
    std::forward<Body>(body)();
    return absl::OkStatus();
  } catch (const c10::Error& error) {
    return absl::InternalError(what + ": " + error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(what + ": out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(what + ": " + error.what());
  }
}

}  // namespace longview::models
