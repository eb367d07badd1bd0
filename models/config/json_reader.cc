#include "models/config/json_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 64;

absl::string_view View(std::string_view s) { return {s.data(), s.size()}; }

// Builds the document with nlohmann's own parser; the callback sees every key and level, which
// is where duplicates and depth can be caught.
class StrictCallback {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      if (!keys_.empty()) keys_.pop_back();
    } else if (event == json::parse_event_t::key && !keys_.empty()) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second && problem_.empty()) {
        problem_ = absl::StrCat("key \"", key.substr(0, 64), "\" appears twice in one object");
      }
    }
    if (static_cast<size_t>(depth) > kMaxDepth && problem_.empty()) {
      problem_ = absl::StrCat("nesting deeper than ", kMaxDepth);
    }
    return true;
  }
  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

absl::Status Error(std::string_view origin, std::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(View(origin), ": ", View(message)));
}

// nlohmann's messages begin with a bracketed identifier that means nothing to our reader.
std::string WithoutTag(std::string what) {
  if (what.starts_with('[')) {
    if (size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
  }
  return what.substr(0, 300);
}

std::optional<int64_t> IntegerIn(const json& value, int64_t min, int64_t max) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (value.is_number_unsigned() && value.get<uint64_t>() > kMax) return std::nullopt;
  const auto number = value.get<int64_t>();
  if (number < min || number > max) return std::nullopt;
  return number;
}

}  // namespace

std::string ShortJson(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 64) text = text.substr(0, 61) + "...";
  return text;
}

absl::StatusOr<json> ParseJson(std::string_view text, std::string_view origin) {
  // The JSON library takes a NUL byte for the end of its input.
  if (text.find('\0') != text.npos) return Error(origin, "not valid JSON: holds a NUL byte");
  StrictCallback strict;
  try {
    json value = json::parse(text.begin(), text.end(), std::ref(strict));
    if (!strict.problem().empty()) return Error(origin, strict.problem());
    return value;
  } catch (const json::exception& e) {
    return Error(origin, absl::StrCat("not valid JSON: ", WithoutTag(e.what())));
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  if (!std::filesystem::is_regular_file(status)) return Error(path, "not a regular file");
  const auto size = std::filesystem::file_size(path, error);
  if (error) return Error(path, error.message());
  if (size > max_bytes) {
    return Error(path, absl::StrCat("file has ", size, " bytes, the limit is ", max_bytes));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) return Error(path, "cannot read");
  return text;
}

absl::StatusOr<json> ReadJsonFile(const std::string& path, size_t max_bytes) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, max_bytes));
  if (text.starts_with("version https://git-lfs")) {
    return Error(path, "is a git-lfs pointer, not the file itself; run `git lfs pull`");
  }
  absl::StatusOr<json> value = ParseJson(text, path);
  if (value.ok() && !value->is_object()) {
    return Error(path, absl::StrCat("expected a JSON object, found ", ShortJson(*value)));
  }
  return value;
}

JsonReader::JsonReader(const json& object, std::string origin)
    : object_(&object), origin_(std::move(origin)) {
  if (!object.is_object()) {
    status_ = Error(origin_, absl::StrCat("expected an object, found ", ShortJson(object)));
  }
}

const json* JsonReader::Find(std::string_view key) const {
  if (!object_->is_object()) return nullptr;
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

bool JsonReader::Has(std::string_view key) const { return Find(key) != nullptr; }

bool JsonReader::IsNull(std::string_view key) const {
  return object_->is_object() && object_->contains(key) && Find(key) == nullptr;
}

const json* JsonReader::Required(std::string_view key, std::string_view expected) {
  const json* value = Find(key);
  if (value == nullptr) Refuse(key, expected);
  return value;
}

void JsonReader::Refuse(std::string_view key, std::string_view expected) {
  if (!status_.ok()) return;
  const json* value = Find(key);
  status_ =
      Error(origin_, absl::StrCat("\"", View(key), "\": expected ", View(expected),
                                  value ? ", found " + ShortJson(*value) : ", it is missing"));
}

void JsonReader::Merge(const absl::Status& other) {
  if (status_.ok()) status_ = other;
}

int64_t JsonReader::Int(std::string_view key, int64_t min, int64_t max) {
  const std::string expected = absl::StrCat("an integer in [", min, ", ", max, "]");
  const json* value = Required(key, expected);
  if (value == nullptr) return 0;
  const std::optional<int64_t> number = IntegerIn(*value, min, max);
  if (!number) Refuse(key, expected);
  return number.value_or(0);
}

double JsonReader::Number(std::string_view key) {
  const json* value = Required(key, "a number");
  if (value == nullptr) return 0;
  if (!value->is_number()) {
    Refuse(key, "a number");
    return 0;
  }
  return value->get<double>();
}

bool JsonReader::Bool(std::string_view key) {
  const json* value = Required(key, "true or false");
  if (value == nullptr) return false;
  if (!value->is_boolean()) {
    Refuse(key, "true or false");
    return false;
  }
  return value->get<bool>();
}

std::string JsonReader::String(std::string_view key) {
  const json* value = Required(key, "a string");
  if (value == nullptr) return {};
  if (!value->is_string()) {
    Refuse(key, "a string");
    return {};
  }
  return value->get<std::string>();
}

std::vector<std::string> JsonReader::StringList(std::string_view key) {
  const json* value = Required(key, "a list of strings");
  if (value == nullptr) return {};
  const auto is_string = [](const json& item) { return item.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_string)) {
    Refuse(key, "a list of strings");
    return {};
  }
  return value->get<std::vector<std::string>>();
}

std::vector<int64_t> JsonReader::IntList(std::string_view key, int64_t min, int64_t max) {
  const std::string expected = absl::StrCat("a list of integers in [", min, ", ", max, "]");
  const json* value = Required(key, expected);
  if (value == nullptr) return {};
  std::vector<int64_t> list;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    const std::optional<int64_t> number = IntegerIn((*value)[i], min, max);
    good = number.has_value();
    list.push_back(number.value_or(0));
  }
  if (good) return list;
  Refuse(key, expected);
  return {};
}

JsonReader JsonReader::Object(std::string_view key) {
  static const json kEmpty = json::object();
  const json* value = Required(key, "an object");
  if (value != nullptr && !value->is_object()) {
    Refuse(key, "an object");
    value = nullptr;
  }
  return JsonReader(value ? *value : kEmpty, absl::StrCat(origin_, ": \"", View(key), "\""));
}

std::string JsonReader::Choice(std::string_view key, std::span<const std::string_view> allowed) {
  const std::string expected = absl::StrCat(
      "one of ", absl::StrJoin(allowed, ", ", [](std::string* out, std::string_view name) {
        absl::StrAppend(out, "\"", View(name), "\"");
      }));
  const json* value = Required(key, expected);
  if (value == nullptr) return {};
  if (value->is_string()) {
    const std::string& text = value->get_ref<const std::string&>();
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  }
  Refuse(key, expected);
  return {};
}

std::string JsonReader::Choice(std::string_view key,
                               std::initializer_list<std::string_view> allowed) {
  return Choice(key, std::span<const std::string_view>(allowed.begin(), allowed.size()));
}

int64_t JsonReader::IntOr(std::string_view key, int64_t fallback, int64_t min, int64_t max) {
  return Has(key) ? Int(key, min, max) : fallback;
}

double JsonReader::NumberOr(std::string_view key, double fallback) {
  return Has(key) ? Number(key) : fallback;
}

bool JsonReader::BoolOr(std::string_view key, bool fallback) {
  return Has(key) ? Bool(key) : fallback;
}

std::string JsonReader::StringOr(std::string_view key, std::string_view fallback) {
  return Has(key) ? String(key) : std::string(fallback);
}

std::string JsonReader::ChoiceOr(std::string_view key, std::string_view fallback,
                                 std::initializer_list<std::string_view> allowed) {
  return Has(key) ? Choice(key, allowed) : std::string(fallback);
}

void JsonReader::RefuseUnknown(std::initializer_list<std::string_view> known) {
  if (!object_->is_object() || !status_.ok()) return;
  for (const auto& [key, value] : object_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string list = absl::StrJoin(
        known, ", ",
        [](std::string* out, std::string_view name) { absl::StrAppend(out, View(name)); });
    status_ =
        Error(origin_, absl::StrCat("unknown key \"", key.substr(0, 64), "\"; known are ", list));
    return;
  }
}

}  // namespace longview::models
