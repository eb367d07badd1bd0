#include "server/http/v1/header_to_send.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace longview::server {
namespace {

constexpr std::string_view kForm = "application/x-www-form-urlencoded";
constexpr std::string_view kAnyPicture = "image/jpeg, image/png or image/webp";

// The media type of a picture that begins so; "" for anything else.
std::string_view PictureType(std::string_view body) {
  if (body.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (body.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  const bool webp =
      body.starts_with("RIFF") && body.substr(std::min<size_t>(8, body.size())).starts_with("WEBP");
  return webp ? "image/webp" : "";
}

}  // namespace

absl::Status WithHeaderToSend(const absl::Status& not_json, std::string_view media,
                              std::string_view body,
                              std::span<const google::protobuf::Descriptor* const> messages) {
  const auto takes = [&](const char* field) {
    return std::any_of(messages.begin(), messages.end(), [field](const auto* message) {
      return message->FindFieldByName(field) != nullptr;
    });
  };
  if (not_json.ok() || GetErrorDetail(not_json).reason != "BAD_JSON") return not_json;
  if (!media.empty() && media != kForm) return not_json;
  std::string_view type = takes("image") ? PictureType(body) : "";
  if (type.empty()) type = takes("text") ? "text/plain" : takes("image") ? kAnyPicture : "";
  if (type.empty()) return not_json;
  const std::string said =
      media.empty() ? "there is no Content-Type"
                    : absl::StrCat("its Content-Type is ", std::string(kForm), ", curl's default");
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(not_json.message(), "; ", said, ": if it is no JSON, send ",
                                "-H 'Content-Type: ", std::string(type), "'"),
                   GetErrorDetail(not_json));
}

}  // namespace longview::server
