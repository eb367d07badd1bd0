// Strict reading of the JSON files of a model directory.
//
// A configuration value that is misread gives wrong answers, not a crash, so everything here
// refuses instead of guessing: duplicate keys, wrong types, values out of range. Every message
// names the file, the key, what was expected and what was found.
// Values are immutable once parsed; a JsonReader belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// Parses one JSON document. Errors: syntax (with line and column), invalid UTF-8, a key twice
// in one object, nesting deeper than 64. `origin` (a file name) begins every message.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view origin);

// Reads and parses a file whose top level is an object.
// Errors: NOT_FOUND without the file; larger than `max_bytes`; those of ParseJson.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path,
                                            size_t max_bytes = size_t{128} << 20);

// Reads a whole file. NOT_FOUND if there is none, INVALID_ARGUMENT if it is not a regular file
// or larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

// Typed access to one JSON object with a sticky error: a getter whose key is missing or wrong
// returns a default-constructed value and remembers the first problem, so that a
// configuration is read as straight code and checked once at the end with status().
// A key that is absent or null counts as not there. Ranges are inclusive.
// REQUIRES: the JSON value outlives the reader.
class JsonReader {
 public:
  // `origin` is the file, with the path inside it for nested objects: "config.json".
  JsonReader(const nlohmann::json& object, std::string origin);

  bool Has(std::string_view key) const;
  bool IsNull(std::string_view key) const;                 // There, and null.
  const nlohmann::json* Find(std::string_view key) const;  // nullptr if absent or null.

  // Required keys.
  int64_t Int(std::string_view key, int64_t min = 0,
              int64_t max = std::numeric_limits<int32_t>::max());
  double Number(std::string_view key);
  bool Bool(std::string_view key);
  std::string String(std::string_view key);
  std::vector<std::string> StringList(std::string_view key);
  // A list of integers.
  std::vector<int64_t> IntList(std::string_view key, int64_t min = 0,
                               int64_t max = std::numeric_limits<int32_t>::max());
  // An object; the nested reader's own errors are handed over with Merge.
  JsonReader Object(std::string_view key);
  // A string that must be one of `allowed`; the message lists them.
  std::string Choice(std::string_view key, std::span<const std::string_view> allowed);
  std::string Choice(std::string_view key, std::initializer_list<std::string_view> allowed);

  // Optional keys.
  int64_t IntOr(std::string_view key, int64_t fallback, int64_t min = 0,
                int64_t max = std::numeric_limits<int32_t>::max());
  double NumberOr(std::string_view key, double fallback);
  bool BoolOr(std::string_view key, bool fallback);
  std::string StringOr(std::string_view key, std::string_view fallback);
  std::string ChoiceOr(std::string_view key, std::string_view fallback,
                       std::initializer_list<std::string_view> allowed);

  // Refuses every key that is not in `known`, by name.
  void RefuseUnknown(std::initializer_list<std::string_view> known);

  // Records "origin: key: expected ..., found ..." for checks that the getters do not have.
  void Refuse(std::string_view key, std::string_view expected);
  void Merge(const absl::Status& other);

  const std::string& origin() const { return origin_; }
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Required(std::string_view key, std::string_view expected);

  const nlohmann::json* object_;
  std::string origin_;
  absl::Status status_;
};

// A value as it reads in a message: JSON, cut to 64 bytes.
std::string ShortJson(const nlohmann::json& value);

}  // namespace longview::models
