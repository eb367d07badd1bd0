#include "server/store/model_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/errors.h"
#include "server/nearest_name.h"

namespace longview::server {

absl::Status ModelNotFound(std::string_view name, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string nearest = DidYouMean("", name, views);
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("model ", Quoted(name), " not found", nearest,
                                nearest.empty() ? "; there are: " : " There are: ",
                                names.empty() ? "none" : absl::StrJoin(names, ", ")),
                   {.reason = "MODEL_NOT_FOUND", .retry_after = {}, .param = "model"});
}

absl::Status VersionNotFound(std::string_view name, std::string_view has, std::string_view asked) {
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("model ", Quoted(name), " has version ", Quoted(has), ", not ", Quoted(asked)),
      {.reason = "VERSION_NOT_FOUND", .retry_after = {}, .param = "version"});
}

}  // namespace longview::server
