#include "server/http/member_readers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/message.h"
#include "server/http/uri.h"

namespace longview::server {

absl::Status ReadModelName(const nlohmann::json& body, std::string_view query, std::string* model) {
  constexpr size_t kLongest = 128;
  constexpr char kField[] = "model";
  const auto member = body.find(kField);
  if (member != body.end()) {
    ASSIGN_OR_RETURN(std::string name, ReadString(*member, kField));
    *model = std::move(name);
  } else if (!query.empty()) {
    const auto fields = ParseQuery(query);
    if (!fields) return FieldError("query", absl::StrCat("malformed: ", Quoted(query)));
    *model = FindField(*fields, kField);
  }
  if (model->size() <= kLongest) return absl::OkStatus();
  return FieldError(kField, absl::StrCat("is ", Quoted(*model), ", of ", model->size(),
                                         " bytes; the limit is ", kLongest));
}

}  // namespace longview::server
