#include "server/http/v1/typed_body.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/message.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/uri.h"
#include "server/http/v1/multipart.h"

namespace longview::server {
namespace {

using nlohmann::json;
using Messages = std::span<const google::protobuf::Descriptor* const>;

// Members beside those of the messages: of a list of texts.
constexpr std::string_view kPartial = "partial";

bool HasMember(Messages messages, const std::string& name) {
  return name == kPartial ||
         std::any_of(messages.begin(), messages.end(), [&](const auto* message) {
           return message->FindFieldByName(name) != nullptr;
         });
}

// Looks at the names on the outermost level and goes on to the end.
class MemberFinder : public nlohmann::json_sax<json> {
 public:
  explicit MemberFinder(Messages messages) : messages_(messages) {}

  std::string Take() { return std::move(found_); }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }  // Not part of JSON.
  bool start_object(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (depth_ == 1 && found_.empty() && HasMember(messages_, name)) found_ = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Open() {
    ++depth_;
    return true;
  }
  bool Close() {
    --depth_;
    return true;
  }

  const Messages messages_;
  size_t depth_ = 0;
  std::string found_;
};

// The first outermost member of `text` that one of `messages` has, where `text` as a whole is a
// JSON object; "" otherwise. Takes no memory but for one string of the text at a time.
std::string RequestMemberOf(std::string_view text, Messages messages) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos || text[first] != '{') return "";
  if (text[text.find_last_not_of(kBlank)] != '}') return "";
  MemberFinder finder(messages);
  return json::sax_parse(text, &finder) ? finder.Take() : "";
}

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

// `not_json` with the header behind it that says what `body` is, where the request had no
// Content-Type or a form's (`media`, in lower case, without parameters), and one of `messages`
// could hold the body as its text or image. Otherwise `not_json` as it is.
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

using Messages = std::span<const google::protobuf::Descriptor* const>;

constexpr std::string_view kText = "text/plain";
constexpr std::string_view kBytes = "application/octet-stream";

// "image/png" of "Image/PNG; q=1".
std::string MediaType(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  absl::StripAsciiWhitespace(&type);
  absl::AsciiStrToLower(&type);
  return type;
}

absl::Status CheckCharset(std::string_view content_type) {
  const std::string charset(FieldParameter(content_type, "charset"));
  for (const char* known : {"", "utf-8", "utf8", "us-ascii"}) {
    if (absl::EqualsIgnoreCase(charset, known)) return absl::OkStatus();
  }
  return UnsupportedMedia(absl::StrCat("charset is ", Quoted(charset), ", expected utf-8"));
}

// The field that a body of this type is the value of; "" if the body has fields of its own.
std::string_view FieldOf(const std::string& media, Messages messages) {
  if (media == kText) return "text";
  if (absl::StartsWith(media, "image/")) return "image";
  if (media != kBytes) return "";
  const bool takes_text = std::any_of(messages.begin(), messages.end(), [](const auto* message) {
    return message->FindFieldByName("text") != nullptr;
  });
  return takes_text ? "text" : "image";
}

absl::Status CheckIsText(std::string_view text, Messages messages) {
  const std::string member = RequestMemberOf(text, messages);
  if (member.empty()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the body is a JSON object with ", Quoted(member), " and says it is ",
                   std::string(kText), ": send Content-Type: application/json (",
                   std::string(kBytes), " if the object itself is the text)"),
      {.reason = "BAD_HEADER", .retry_after = {}, .param = "Content-Type"});
}

}  // namespace

absl::StatusOr<TypedBody> TypedBody::Parse(HttpRequest& request, size_t max_bytes,
                                           Messages messages) {
  std::string text = std::exchange(request.body, {});
  const std::string_view content_type = request.Header("Content-Type");
  const std::string media = MediaType(content_type);
  TypedBody body;
  if (const std::string_view field = FieldOf(media, messages); !field.empty()) {
    RETURN_IF_ERROR(CheckCharset(content_type));
    if (media == kText) {
      RETURN_IF_ERROR(CheckIsText(text, messages));
    }
    auto fields = ParseQuery(request.query);
    if (!fields) return FieldError("query", absl::StrCat("malformed: ", Quoted(request.query)));
    body.fields_ = *std::move(fields);
    body.fields_.emplace_back(field, std::move(text));
    return body;
  }
  if (absl::StartsWith(media, "multipart/")) {
    if (media != "multipart/form-data") {
      return UnsupportedMedia(absl::StrCat("header Content-Type is ", Quoted(content_type),
                                           ", of multipart only form-data is read"));
    }
    ASSIGN_OR_RETURN(HttpFields parts, ParseMultipart(content_type, text));
    body.fields_ = std::move(parts);
    return body;
  }
  absl::StatusOr<nlohmann::json> object = ParseObject(text, max_bytes);
  if (!object.ok()) return WithHeaderToSend(object.status(), media, text, messages);
  body.object_ = *std::move(object);
  return body;
}

bool TypedBody::Has(std::string_view field) const {
  if (object_.is_object()) return object_.contains(field);
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& pair) { return pair.first == field; });
}

absl::StatusOr<std::optional<TextList>> TypedBody::TakeTexts(size_t most) {
  constexpr char kField[] = "text";
  const auto member = object_.is_object() ? object_.find(kField) : object_.end();
  if (member == object_.end() || !IsArray(*member)) return std::nullopt;
  const size_t size = ArraySize(*member);
  if (size == 0) return FieldError(kField, "has no elements");
  if (size > most) {
    return FieldError(kField, absl::StrCat("has ", size, " elements, the limit is ", most));
  }
  TextList texts;
  if (member->is_binary()) return FieldError(kField, "expected strings, got numbers");
  for (size_t i = 0; i < size; ++i) {
    texts.push_back(TakeString((*member)[i], absl::StrCat(kField, "[", i, "]")));
  }
  object_.erase(member);
  return texts;
}

absl::StatusOr<bool> TypedBody::TakeFlag(const char* field) {
  const auto member = object_.is_object() ? object_.find(field) : object_.end();
  if (member == object_.end()) return false;
  const nlohmann::json value = std::move(*member);
  object_.erase(member);
  return ReadBool(value, field);
}

absl::Status TypedBody::MoveTo(google::protobuf::Message* message) {
  if (object_.is_object()) return ReadMessage(std::move(object_), message);
  for (size_t i = 0; i < fields_.size(); ++i) {
    auto& [name, value] = fields_[i];
    const auto* field = message->GetDescriptor()->FindFieldByName(name);
    const bool again = std::any_of(fields_.begin(), fields_.begin() + static_cast<ptrdiff_t>(i),
                                   [&name = name](const auto& pair) { return pair.first == name; });
    if (again && field && !field->is_repeated()) return FieldError(name, "given twice");
    RETURN_IF_ERROR(ReadTextField(name, std::move(value), message));
  }
  return absl::OkStatus();
}

}  // namespace longview::server
