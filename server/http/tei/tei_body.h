// Bodies of text-embeddings-inference's routes: members that are not known are ignored, null is the
// default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace longview::server {

// The member with the texts.
inline constexpr char kInputs[] = "inputs";

class TeiBody {
 public:
  // INVALID_ARGUMENT for what is no JSON object. The model may also stand in `query`. JSON values
  // take at most `max_bytes` (ParseJson).
  static absl::StatusOr<TeiBody> Parse(std::string_view body, std::string_view query,
                                       size_t max_bytes);

  const std::string& model() const { return model_; }

  // Null if it is absent.
  nlohmann::json* Find(const char* name);
  // The member, which must be there.
  absl::StatusOr<nlohmann::json*> Required(const char* name);
  // The object at a member, taken out of this one; empty if it is absent.
  absl::StatusOr<TeiBody> Nested(const char* name);
  absl::StatusOr<bool> Flag(const char* name, bool fallback);
  // Unset if it is absent.
  absl::StatusOr<std::optional<bool>> OptionalFlag(const char* name);
  absl::StatusOr<std::optional<int32_t>> OptionalNumber(const char* name);
  // "left" or "right" in any case, in lower case; empty if absent.
  absl::StatusOr<std::string> Direction();

 private:
  nlohmann::json object_;
  std::string model_;
};

}  // namespace longview::server
