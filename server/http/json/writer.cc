#include "server/http/json/writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nlohmann/json.hpp"

namespace longview::server {
namespace {

template <typename T>
void AppendChars(T value, std::string* out) {
  char digits[32];  // Enough for the shortest form of a double and for 64-bit integers.
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), value);
  out->append(digits, end);
}

template <typename T>
void AppendFloating(T value, std::string* out) {
  if (std::isfinite(value)) {
    AppendChars(value, out);
  } else {
    out->append("null");
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  using nlohmann::json;
  // The library copies and checks; streamed pieces are mostly a few plain letters.
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c < 0x7F && c != '"' && c != '\\';
  });
  if (plain) {
    out->push_back('"');
    out->append(text).push_back('"');
    return;
  }
  out->append(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

void AppendJson(int64_t value, std::string* out) { AppendChars(value, out); }
void AppendJson(uint64_t value, std::string* out) { AppendChars(value, out); }
void AppendJson(bool value, std::string* out) { out->append(value ? "true" : "false"); }
void AppendJson(double value, std::string* out) { AppendFloating(value, out); }
void AppendJson(float value, std::string* out) { AppendFloating(value, out); }

void AppendJsonArray(std::span<const float> values, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJson(values[i], out);
  }
  out->push_back(']');
}

}  // namespace longview::server
