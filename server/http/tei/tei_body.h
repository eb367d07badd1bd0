// Bodies of text-embeddings-inference's routes: members that are not known are left aside, as
// there, unless they would change the answer.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "server/http/members.h"

namespace longview::server {

// The member with the texts.
inline constexpr char kInputs[] = "inputs";

// Why members of other routes are refused.
inline constexpr Refused kNoZeroShot{"zero-shot classification is not served"};
inline constexpr Refused kElsewhere{"means nothing to this route"};

struct TeiBody {
  nlohmann::json object;
  std::string model;  // "": it names none.
};

// INVALID_ARGUMENT for what is no JSON object. The model may also stand in `query`. JSON values
// take at most `max_bytes` (ParseJson).
absl::StatusOr<TeiBody> ParseTei(std::string_view body, std::string_view query, size_t max_bytes);

// Puts what is nested in `parameters`, as the Hugging Face client sends it, beside the other
// members. INVALID_ARGUMENT for one that is not `known`, or is there already.
absl::Status SpreadParameters(nlohmann::json& object,
                              absl::FunctionRef<bool(std::string_view)> known);

// Reads a body by the table of its route.
template <typename Out>
absl::Status ReadTei(const MemberTable<Out>& table, nlohmann::json& object, Out& out) {
  absl::Status spread =
      SpreadParameters(object, [&](std::string_view name) { return table.Find(name) != nullptr; });
  return spread.ok() ? table.ReadKnown(object, out) : spread;
}

// "left" or "right" in any case, in lower case.
absl::StatusOr<std::string> ReadDirection(const nlohmann::json& value, const std::string& name);

// ReadDirection for tables: hands the direction to `set`.
template <typename Out>
typename MemberRow<Out>::Reader ReadsDirection(void (*set)(Out&, std::string)) {
  return [set](nlohmann::json& value, const std::string& name, Out& out) {
    absl::StatusOr<std::string> direction = ReadDirection(value, name);
    if (direction.ok()) set(out, *std::move(direction));
    return direction.status();
  };
}

}  // namespace longview::server
