#include "server/http/v1/score_request.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {
namespace {

using nlohmann::json;

constexpr char kFirst[] = "text_1";
constexpr char kSecond[] = "text_2";

// A string, or strings.
MemberRow<ScoreRequest>::Reader TextsInto(std::vector<std::string> ScoreRequest::*place) {
  return [place](json& value, const std::string& name, ScoreRequest& out) -> absl::Status {
    if (!value.is_array() && !value.is_string()) {
      return FieldError(name, absl::StrCat("expected a string or strings, got ", Describe(value)));
    }
    if (value.is_string()) value = json::array({std::move(value)});
    if (value.empty()) return FieldError(name, "has no elements");
    for (size_t i = 0; i < value.size(); ++i) {
      ASSIGN_OR_RETURN(std::string text, TakeString(value[i], absl::StrCat(name, "[", i, "]")));
      (out.*place).push_back(std::move(text));
    }
    return absl::OkStatus();
  };
}

const MemberTable<ScoreRequest>& ScoreTable() {
  using enum MemberOf;
  static const auto* const table = new MemberTable<ScoreRequest>{
      {"model", kVllm, ReadBefore<ScoreRequest>()},
      {kFirst, kVllm, TextsInto(&ScoreRequest::first)},
      {kSecond, kVllm, TextsInto(&ScoreRequest::second)},
      {"truncate_prompt_tokens", kVllm,
       Reads(+[](ScoreRequest& r, int32_t n) { r.truncate_prompt_tokens = n; })},
      {"priority", kVllm, NoEffect{}},
      {"user", kVllm, NoEffect{}},
      {"raw_scores", kLongview, Reads(+[](ScoreRequest& r, bool f) { r.raw_scores = f; })},
      {"truncate", kLongview, Reads(+[](ScoreRequest& r, bool f) { r.truncate = f; })},
  };
  return *table;
}

}  // namespace

absl::StatusOr<ScoreRequest> ParseScore(std::string_view text, std::string_view query,
                                        size_t max_bytes) {
  ASSIGN_OR_RETURN(json body, ParseObject(text, max_bytes));
  ScoreRequest out;
  out.field = kSecond;
  out.first_field = kFirst;
  RETURN_IF_ERROR(ReadModelName(body, query, &out.model));
  for (const char* needed : {kFirst, kSecond}) {
    if (!body.contains(needed)) return FieldError(needed, "is missing");
  }
  RETURN_IF_ERROR(ScoreTable().Read(body, out));
  return out;
}

std::vector<MemberInfo> ScoreMembers() { return ScoreTable().infos(); }

}  // namespace longview::server
