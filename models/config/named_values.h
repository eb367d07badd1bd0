// Strings of a configuration that stand for values of an enum.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"

namespace longview::models {

// The value called `name`; another name is the reader's error at `key`, which lists the known ones.
template <typename Value, size_t kCount>
Value ReadNamed(JsonReader& reader, std::string_view key, std::string_view name,
                const std::array<std::pair<std::string_view, Value>, kCount>& table) {
  std::string expected = "one of";
  for (const auto& [known, value] : table) {
    if (known == name) return value;
    absl::StrAppend(&expected, " ", std::string(known));
  }
  reader.Refuse(key, expected);
  return table[0].second;
}

// The names of a table.
template <typename Value, size_t kCount>
std::array<std::string_view, kCount> NamesOf(
    const std::array<std::pair<std::string_view, Value>, kCount>& table) {
  std::array<std::string_view, kCount> names;
  for (size_t i = 0; i < kCount; ++i) names[i] = table[i].first;
  return names;
}

}  // namespace longview::models
