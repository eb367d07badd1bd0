// Passing errors on: the one way in which functions of models/ and server/ hand a status to their
// caller unchanged.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of an expression (absl::Status) from this function unless it is OK.
#define RETURN_IF_ERROR(...)                                                     \
  do {                                                                           \
    if (absl::Status status_to_return = (__VA_ARGS__); !status_to_return.ok()) { \
      return status_to_return;                                                   \
    }                                                                            \
  } while (false)

// Declares or sets `lhs` with the value of an expression (absl::StatusOr<T>), or returns its status
// from this function: ASSIGN_OR_RETURN(const Config config, ParseConfig(text));
// A type with a comma in it is written as auto.
#define ASSIGN_OR_RETURN(lhs, ...) \
  LONGVIEW_ASSIGN_OR_RETURN_TO(LONGVIEW_JOIN_NAMES(status_or_value_, __LINE__), lhs, __VA_ARGS__)

// Parts of ASSIGN_OR_RETURN.
#define LONGVIEW_JOIN_NAMES(a, b) LONGVIEW_JOIN_EXPANDED_NAMES(a, b)
#define LONGVIEW_JOIN_EXPANDED_NAMES(a, b) a##b
#define LONGVIEW_ASSIGN_OR_RETURN_TO(result, lhs, ...) \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)
