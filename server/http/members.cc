#include "server/http/members.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/json/body_error.h"
#include "server/nearest_name.h"

namespace longview::server {

absl::Status UnknownMember(std::string_view before, std::string_view name,
                           const std::vector<MemberInfo>& known) {
  std::vector<std::string_view> names;
  for (const MemberInfo& member : known) {
    if (member.use == MemberUse::kUsed) names.push_back(member.name);
  }
  return FieldError(std::string(before).append(name),
                    absl::StrCat("unknown member", DidYouMean(before, std::string(name), names)));
}

absl::Status RefusedMember(std::string_view name, std::string_view why) {
  return FieldError(name, why);
}

}  // namespace longview::server
