// Appends JSON to a string. Shared by everything that answers in JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace longview::server {

// Quoted and escaped; bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out);

void AppendJson(int64_t value, std::string* out);
void AppendJson(uint64_t value, std::string* out);
void AppendJson(bool value, std::string* out);
// The shortest digits that read back as the same value of that width. JSON has no NaN and no
// infinity: null.
void AppendJson(double value, std::string* out);
void AppendJson(float value, std::string* out);

// "[1,2.5,...]".
void AppendJsonArray(std::span<const float> values, std::string* out);

}  // namespace longview::server
