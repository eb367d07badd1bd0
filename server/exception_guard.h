// Turns exceptions of a model into absl::Status.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longview::server {

// The error of a request that found no memory: it may find some later.
absl::Status OutOfMemoryError();

// Whether an exception's text is LibTorch's of an allocation that failed.
inline bool SaysOutOfMemory(std::string_view what) {
  return what.find("not enough memory") != std::string_view::npos ||
         what.find("can't allocate memory") != std::string_view::npos;
}

// Calls `function`, which returns an absl::Status or StatusOr; if it throws: RESOURCE_EXHAUSTED for
// want of memory, else INTERNAL.
template <typename Function>
auto Guarded(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError();
  } catch (const std::exception& error) {
    if (SaysOutOfMemory(error.what())) return OutOfMemoryError();
    return absl::InternalError(std::string("exception: ") + error.what());
  } catch (...) {
    return absl::InternalError("exception of unknown type");
  }
}

// Answers `done` with `result`. If that throws, as it may where an answer is built and there is no
// memory for it, `done` is told so instead; what it throws then is lost, and the process lives.
template <typename Done, typename Result>
void Deliver(Done& done, Result result) {
  const absl::Status failed = Guarded([&] {
    done(std::move(result));
    return absl::OkStatus();
  });
  if (failed.ok()) return;
  Guarded([&] {
    done(failed);
    return absl::OkStatus();
  }).IgnoreError();
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
