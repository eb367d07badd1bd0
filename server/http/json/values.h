// Typed reads of JSON values, with errors that name the field and the value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::server {

// A short rendering of any value for error messages: at most 64 characters.
std::string Describe(const nlohmann::json& value);

// True for arrays in either form of json/parse.h.
bool IsArray(const nlohmann::json& value);
size_t ArraySize(const nlohmann::json& value);

// Elements as T, appended to `out` (int32_t, int64_t, uint64_t, float, double). Integers must
// be written as integers and fit T; a float that overflows T is an error.
// INVALID_ARGUMENT names `field`, the index and the value.
template <typename T>
absl::Status AppendNumbers(const nlohmann::json& array, std::string_view field,
                           std::vector<T>* out);

absl::StatusOr<bool> ReadBool(const nlohmann::json& value, std::string_view field);
// Moves the string out of `value`.
absl::StatusOr<std::string> TakeString(nlohmann::json& value, std::string_view field);
absl::StatusOr<std::string> ReadString(const nlohmann::json& value, std::string_view field);

// One number as T, rules as AppendNumbers.
template <typename T>
absl::StatusOr<T> ReadNumber(const nlohmann::json& value, std::string_view field);

// INVALID_ARGUMENT unless the body is an object.
absl::Status ExpectObject(const nlohmann::json& body);

}  // namespace longview::server
