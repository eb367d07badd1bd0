#include "server/api/infer/infer_parameters.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/api/calls/context.h"
#include "server/api/infer/parameter_values.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using inference::InferParameter;
using models::Task;

absl::Status BadParameter(std::string_view name, std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("parameter ", Quoted(name), ": ", std::string(problem)),
                   {.reason = "INVALID_ARGUMENT", .param = Excerpt(name)});
}

// A JSON list of strings, or the string itself.
std::optional<std::vector<std::string>> AsStrings(const InferParameter& value) {
  if (!value.has_string_param()) return std::nullopt;
  const std::string& text = value.string_param();
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '[') return std::vector<std::string>{text};
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  // "[MASK]" is a plain string, although it looks like the start of a list.
  if (json.is_discarded()) return std::vector<std::string>{text};
  std::vector<std::string> strings;
  for (const auto& element : json) {
    if (!element.is_string()) return std::nullopt;
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

absl::Status ReadFlag(std::string_view name, const InferParameter& value, bool& out) {
  const std::optional<bool> flag = AsBool(value);
  if (!flag) return BadParameter(name, absl::StrCat(ValueText(value), " is not true or false"));
  out = *flag;
  return absl::OkStatus();
}

absl::Status ReadCount(std::string_view name, const InferParameter& value, int& out) {
  const std::optional<int64_t> number = AsInteger(value);
  if (!number || *number < 1 || *number > std::numeric_limits<int>::max()) {
    return BadParameter(name, absl::StrCat(ValueText(value), " is not a whole number from 1 to ",
                                           std::numeric_limits<int>::max()));
  }
  out = static_cast<int>(*number);
  return absl::OkStatus();
}

absl::Status ReadFraction(std::string_view name, const InferParameter& value,
                          std::optional<float>& out) {
  double number = 0;
  bool known =
      absl::SimpleAtod(value.has_string_param() ? value.string_param() : ValueText(value), &number);
  known = known && !value.has_bool_param() && number >= 0 && number <= 1;
  if (!known) return BadParameter(name, absl::StrCat(ValueText(value), " is not in [0, 1]"));
  out = static_cast<float>(number);
  return absl::OkStatus();
}

absl::Status ReadName(std::string_view name, const InferParameter& value, std::string& out) {
  if (!value.has_string_param()) {
    return BadParameter(name, absl::StrCat(ValueText(value), " is not a string"));
  }
  constexpr size_t kLongestName = 64;
  if (value.string_param().size() > kLongestName) {
    return BadParameter(name, absl::StrCat(ValueText(value), " has ", value.string_param().size(),
                                           " bytes, the limit is ", kLongestName));
  }
  out = value.string_param();
  return absl::OkStatus();
}

absl::Status ReadText(std::string_view name, const InferParameter& value, std::string& out) {
  if (!value.has_string_param()) {
    return BadParameter(name, absl::StrCat(ValueText(value), " is not a string"));
  }
  out = value.string_param();
  return absl::OkStatus();
}

absl::Status ReadTimeout(const InferParameter& value, InferParameters& out) {
  const std::optional<int64_t> micros = AsInteger(value);
  if (!micros || *micros < 0) {
    return BadParameter("timeout",
                        absl::StrCat(ValueText(value), " is not a number of microseconds"));
  }
  if (*micros > 0) out.timeout = absl::Microseconds(*micros);
  return absl::OkStatus();
}

// The parameter as JSON, for options whose reader knows their kind. Unset: not a finite number.
std::optional<std::string> JsonText(const InferParameter& value) {
  using nlohmann::json;
  if (value.has_double_param()) {
    if (!std::isfinite(value.double_param())) return std::nullopt;
    return json(value.double_param()).dump();
  }
  if (!value.has_string_param()) return ValueText(value);
  const std::string& text = value.string_param();
  // Python writes its truth values with a capital.
  if (text == "True" || text == "False") return absl::AsciiStrToLower(text);
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::Status ReadOption(const std::string& name, const InferParameter& value,
                        models::GenerationOptions& out) {
  const std::optional<std::string> json = JsonText(value);
  if (!json) return BadParameter(name, absl::StrCat(ValueText(value), " is not a finite number"));
  const absl::Status status = models::SetOption(out, name, *json);
  if (status.ok()) return status;
  std::string problem(status.message());
  if (problem.starts_with(name + ": ")) problem.erase(0, name.size() + 2);
  return BadParameter(name, problem);
}

// The names a task knows beside those that every request may have.
std::vector<std::string> NamesOf(Task task) {
  if (task == Task::kTextGeneration) return {"truncate", "HuggingFace's generation options"};
  if (Generates(task)) return {"global_tokens", "truncate", "HuggingFace's generation options"};
  if (task == Task::kObjectDetection) return {"max_detections", "score_threshold"};
  std::vector<std::string> names = {"global_tokens", "normalize", "pooling", "truncate",
                                    "truncation_direction"};
  if (task == Task::kEmbedding || task == Task::kMultiVector) {
    names.insert(names.end(), {"prompt", "prompt_name"});
  }
  if (task == Task::kEmbedding) names.push_back("dimensions");
  if (task == Task::kTokenClassification) names.push_back("aggregation");
  if (task == Task::kQuestionAnswering) names.push_back("max_answer_tokens");
  if (task == Task::kFillMask) names.push_back("top_k");
  return names;
}

absl::Status ReadOne(std::string_view name, const InferParameter& value, InferParameters& out) {
  if (name == "truncate") return ReadFlag(name, value, out.truncate.emplace());
  if (name == "normalize") return ReadFlag(name, value, out.normalize.emplace());
  if (name == "top_k") return ReadCount(name, value, out.top_k);
  if (name == "max_answer_tokens") return ReadCount(name, value, out.max_answer_tokens);
  if (name == "max_detections") return ReadCount(name, value, out.max_detections);
  if (name == "score_threshold") return ReadFraction(name, value, out.score_threshold);
  if (name == "prompt") return ReadText(name, value, out.prompt.emplace());
  if (name == "prompt_name") return ReadName(name, value, out.prompt_name.emplace());
  if (name == "truncation_direction") return ReadName(name, value, out.truncation_direction);
  if (name == "dimensions") {
    out.dimensions = AsInteger(value);
    if (out.dimensions) return absl::OkStatus();
    return BadParameter(name, absl::StrCat(ValueText(value), " is not a whole number"));
  }
  if (name == "pooling") return ReadName(name, value, out.pooling);
  if (name == "aggregation") return ReadName(name, value, out.aggregation);
  // NamesOf emptied the value.
  std::optional<std::vector<std::string>> strings = AsStrings(value);
  if (!strings) {
    return BadParameter(name, absl::StrCat(ValueText(value), " is not a JSON list of strings"));
  }
  out.global_tokens = *std::move(strings);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InferParameters> ReadParameters(const ParameterMap& parameters, Task task) {
  const std::vector<std::string> names = NamesOf(task);
  InferParameters out;
  if (Generates(task)) out.generation.emplace();
  for (const auto& [key, value] : parameters) {
    absl::Status status;
    if (key == "timeout") {
      status = ReadTimeout(value, out);
    } else if (key == "triton_enable_empty_final_response") {
      bool ignored = false;
      status = ReadFlag(key, value, ignored);
    } else if (out.generation && models::IsGenerationOption(key)) {
      status = ReadOption(key, value, *out.generation);
    } else if (absl::StartsWith(key, "sequence_")) {
      status = BadParameter(key, "sequences are not served; send whole documents");
    } else if (std::find(names.begin(), names.end(), key) != names.end()) {
      status = ReadOne(key, value, out);
    } else if (key != "priority") {
      status = BadParameter(
          key, absl::StrCat("unknown for the task ", std::string(models::TaskName(task)),
                            "; known: ", absl::StrJoin(names, ", "), ", priority, timeout"));
    }
    if (!status.ok()) return status;
  }
  return out;
}

}  // namespace longview::server
