// The one place where exceptions of LibTorch and of devices become absl::Status.
//
// Only translation units that call LibTorch include it. Thread-compatible.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "c10/util/Exception.h"
#include "models/device_error.h"
#include "models/model.h"

namespace longview::models {

// Runs `body`; what LibTorch, a device or the allocator throws becomes a status that starts with
// `what`; one of a device that is lost has the payload kDeviceLost.
template <typename Body>
absl::Status GuardTorch(const std::string& what, Body&& body) {
  try {
    std::forward<Body>(body)();
    return absl::OkStatus();
  } catch (const c10::Error& error) {
    return absl::InternalError(what + ": " + error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(what + ": out of memory");
  } catch (const DeviceError& error) {
    absl::Status status = absl::InternalError(what + ": " + error.what());
    if (error.lost()) status.SetPayload(std::string(kDeviceLost), absl::Cord());
    return status;
  } catch (const std::exception& error) {
    return absl::InternalError(what + ": " + error.what());
  }
}

}  // namespace longview::models
