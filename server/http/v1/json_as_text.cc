#include "server/http/v1/json_as_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "nlohmann/json.hpp"

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

}  // namespace

std::string RequestMemberOf(std::string_view text, Messages messages) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos || text[first] != '{') return "";
  if (text[text.find_last_not_of(kBlank)] != '}') return "";
  MemberFinder finder(messages);
  return json::sax_parse(text, &finder) ? finder.Take() : "";
}

}  // namespace longview::server
