#include "models/generation/options/option_reader.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"

namespace longview::models {

namespace {

using nlohmann::json;

// Ids of one list, and lists of one option: more are a mistake.
constexpr size_t kMostIds = 65536;

// Bounds of types: no client means them.
bool IsBound(double limit) {
  return limit < std::numeric_limits<int>::max() && limit > std::numeric_limits<int>::min();
}
bool IsLeastAboveZero(double limit) {
  return limit > 0 && limit <= std::numeric_limits<float>::min();
}

std::string Range(double min, double max) {
  return IsLeastAboveZero(min) ? absl::StrCat("in (0, ", max, "]")
                               : absl::StrCat("in [", min, ", ", max, "]");
}

}  // namespace

void OptionReader::Refuse(std::string_view name, std::string_view problem) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", std::string(problem)));
}

void OptionReader::Wrong(std::string_view name, std::string_view expected) {
  Refuse(name, absl::StrCat("expected ", std::string(expected), ", found ",
                            ShortJson(read_.find(name)->second)));
}

const json* OptionReader::Find(std::string_view name) {
  const auto given = others_.find(std::string(name));
  if (given == others_.end()) return nullptr;
  absl::StatusOr<json> value = ParseJson(given->second, given->first);
  if (!value.ok() && status_.ok()) status_ = value.status();
  const auto [entry, added] = read_.emplace(given->first, value.ok() ? *std::move(value) : json());
  return entry->second.is_null() ? nullptr : &entry->second;
}

bool OptionReader::Bool(std::string_view name, bool fallback) {
  const json* value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Wrong(name, "true or false");
  return fallback;
}

int OptionReader::Int(std::string_view name, int fallback, int min) {
  const json* value = Find(name);
  if (value == nullptr) return fallback;
  constexpr int kMax = std::numeric_limits<int>::max();
  if (value->is_number()) {
    const double number = value->get<double>();
    if (number >= min && number <= kMax && number == std::floor(number)) {
      return static_cast<int>(number);
    }
  }
  Wrong(name, absl::StrCat("an integer of at least ", min));
  return fallback;
}

double OptionReader::Number(std::string_view name, double fallback, double min, double max) {
  const json* value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (number >= min && number <= max) return number;
  }
  Wrong(name, NumberText(min, max));
  return fallback;
}

std::optional<int32_t> OptionReader::Id(std::string_view name) {
  const json* value = Find(name);
  std::vector<int32_t> ids;
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && ReadIds(*value, ids)) return ids[0];
  Wrong(name, absl::StrCat("a token id in [0, ", vocab_, ")"));
  return std::nullopt;
}

bool OptionReader::ReadIds(const json& value, std::vector<int32_t>& ids) const {
  const auto one = [&](const json& item) {
    if (!item.is_number_integer()) return false;
    const auto id = item.get<int64_t>();
    if (id < 0 || id >= vocab_) return false;
    ids.push_back(static_cast<int32_t>(id));
    return true;
  };
  if (!value.is_array()) return one(value);
  if (value.size() > kMostIds) return false;
  for (const json& item : value) {
    if (!one(item)) return false;
  }
  return true;
}

std::vector<int32_t> OptionReader::Ids(std::string_view name) {
  const json* value = Find(name);
  std::vector<int32_t> ids;
  if (value == nullptr || ReadIds(*value, ids)) return ids;
  Wrong(name,
        absl::StrCat("a token id or a list of at most ", kMostIds, ", each in [0, ", vocab_, ")"));
  return {};
}

std::vector<std::vector<int32_t>> OptionReader::IdLists(std::string_view name) {
  const json* value = Find(name);
  std::vector<std::vector<int32_t>> lists;
  if (value == nullptr) return lists;
  bool good = value->is_array() && value->size() <= kMostIds;
  for (size_t i = 0; good && i < value->size(); ++i) {
    std::vector<int32_t> ids;
    good = (*value)[i].is_array() && ReadIds((*value)[i], ids) && !ids.empty();
    lists.push_back(std::move(ids));
  }
  if (good) return lists;
  Wrong(name, absl::StrCat("a list of at most ", kMostIds,
                           " lists of token ids, none empty, each id in [0, ", vocab_, ")"));
  return {};
}

std::vector<GenerationSettings::Bias> OptionReader::Biases(std::string_view name) {
  const json* value = Find(name);
  std::vector<GenerationSettings::Bias> biases;
  if (value == nullptr) return biases;
  bool good = value->is_array() && value->size() <= kMostIds;
  for (size_t i = 0; good && i < value->size(); ++i) {
    const json& entry = (*value)[i];
    GenerationSettings::Bias bias;
    good = entry.is_array() && entry.size() == 2 && entry[0].is_array() && entry[1].is_number() &&
           ReadIds(entry[0], bias.ids) && !bias.ids.empty();
    if (good) bias.bias = entry[1].get<double>();
    biases.push_back(std::move(bias));
  }
  if (good) return biases;
  Wrong(name, absl::StrCat("a list of [[token ids], number], ids in [0, ", vocab_, ")"));
  return {};
}

std::vector<GenerationSettings::Bias> OptionReader::TokenBiases(std::string_view name) {
  constexpr double kMost = 100;
  const json* value = Find(name);
  std::vector<GenerationSettings::Bias> biases;
  if (value == nullptr) return biases;
  if (!value->is_object() || value->size() > kMostIds) {
    Wrong(name, absl::StrCat("an object of at most ", kMostIds, " token ids with their biases"));
    return {};
  }
  for (const auto& [key, bias] : value->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocab_) {
      Refuse(name,
             absl::StrCat("token \"", key.substr(0, 64), "\" is not an id in [0, ", vocab_, ")"));
      return {};
    }
    const double number = bias.is_number() ? bias.get<double>() : kMost + 1;
    if (!(number >= -kMost && number <= kMost)) {
      Refuse(name, absl::StrCat("the bias of token ", id, ", ", ShortJson(bias),
                                ", is not a number in [", -kMost, ", ", kMost, "]"));
      return {};
    }
    biases.push_back({{id}, number});
  }
  return biases;
}

std::optional<GenerationSettings::Decay> OptionReader::Decay(std::string_view name) {
  const json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  constexpr int kMax = std::numeric_limits<int>::max();
  if (value->is_array() && value->size() == 2 && (*value)[0].is_number_integer() &&
      (*value)[1].is_number()) {
    const auto start = (*value)[0].get<int64_t>();
    const double factor = (*value)[1].get<double>();
    if (start >= 0 && start <= kMax && factor > 0) {
      return GenerationSettings::Decay{static_cast<int>(start), factor};
    }
  }
  Wrong(name, "[first token, factor], an integer of at least 0 and a number above 0");
  return std::nullopt;
}

EarlyStopping OptionReader::Early(std::string_view name, EarlyStopping fallback) {
  const json* value = Find(name);
  if (value == nullptr) return fallback;
  if (*value == "never") return EarlyStopping::kNever;
  if (value->is_boolean()) return value->get<bool>() ? EarlyStopping::kYes : EarlyStopping::kNo;
  Wrong(name, "true, false or \"never\"");
  return fallback;
}

void OptionReader::RefuseUnread() {
  for (const auto& [name, value] : others_) {
    if (read_.count(name) == 0) Refuse(name.substr(0, 64), "no such generation option");
  }
}

std::string OutsideText(double value, double min, double max) {
  if (IsBound(max)) return absl::StrCat(value, " is not ", Range(min, max));
  if (value > max) return absl::StrCat(value, " is more than a number of its type may be");
  if (IsLeastAboveZero(min)) return absl::StrCat(value, " is not above 0");
  if (IsBound(min)) return absl::StrCat(value, " is not at least ", min);
  return absl::StrCat(value, " is no number, or less than one of its type may be");
}

std::string NumberText(double min, double max) {
  if (IsBound(max)) return absl::StrCat("a number ", Range(min, max));
  if (IsLeastAboveZero(min)) return "a number above 0";
  return IsBound(min) ? absl::StrCat("a number of at least ", min) : "a number";
}

}  // namespace longview::models
