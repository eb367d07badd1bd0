// Typed reading of GenerationOptions::others with a sticky error: getters return the fallback for
// options that are not there or wrong, and the first problem is checked once at the end. Belongs to
// one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/options/settings.h"
#include "nlohmann/json.hpp"

namespace longview::models {

class OptionReader {
 public:
  // Ids are in [0, vocab). REQUIRES: `others` outlives the reader.
  OptionReader(const std::map<std::string, std::string>& others, int vocab)
      : others_(others), vocab_(vocab) {}

  bool Has(std::string_view name) const { return others_.count(std::string(name)) > 0; }

  bool Bool(std::string_view name, bool fallback);
  int Int(std::string_view name, int fallback, int min);
  // Finite, in [min, max].
  double Number(std::string_view name, double fallback, double min, double max);
  std::optional<int32_t> Id(std::string_view name);
  // A token id or a list of them.
  std::vector<int32_t> Ids(std::string_view name);
  std::vector<std::vector<int32_t>> IdLists(std::string_view name);
  // [[ids, bias], ...]
  std::vector<GenerationSettings::Bias> Biases(std::string_view name);
  // {"id": bias, ...}, as OpenAI writes biases of single tokens.
  std::vector<GenerationSettings::Bias> TokenBiases(std::string_view name);
  // [start, factor]
  std::optional<GenerationSettings::Decay> Decay(std::string_view name);
  EarlyStopping Early(std::string_view name, EarlyStopping fallback);

  // Refuses the options no getter asked for.
  void RefuseUnread();
  void Refuse(std::string_view name, std::string_view problem);
  const absl::Status& status() const { return status_; }

 private:
  // Null if it is not there.
  const nlohmann::json* Find(std::string_view name);
  void Wrong(std::string_view name, std::string_view expected);
  bool ReadIds(const nlohmann::json& value, std::vector<int32_t>& ids) const;

  const std::map<std::string, std::string>& others_;
  const int vocab_;
  std::map<std::string, nlohmann::json, std::less<>> read_;
  absl::Status status_;
};

// The bounds of an option in words for errors: "0.5 is not in [1, 2]", "0 is not in (0, 1]" (where
// `min` is the least number above 0), and without bounds that are those of a type, "-1 is not at
// least 0". NaN is in no range.
std::string OutsideText(double value, double min, double max);

// "a number in [0, 1]", "a number of at least 0", "a number above 0".
std::string NumberText(double min, double max);

}  // namespace longview::models
