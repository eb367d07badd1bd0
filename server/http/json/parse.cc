#include "server/http/json/parse.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/number_arrays.h"
#include "server/http/json/values.h"

namespace longview::server {
namespace {

using nlohmann::json;

template <typename T>
json::binary_t AsBinary(const std::vector<T>& numbers, uint64_t subtype) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(numbers.data());
  return json::binary_t(std::vector<uint8_t>(bytes, bytes + numbers.size() * sizeof(T)), subtype);
}

// Frees the numbers.
json::binary_t TakeBinary(Numbers& numbers) {
  const Numbers taken = std::exchange(numbers, {});
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&taken)) {
    return AsBinary(*integers, kInt64Array);
  }
  return AsBinary(std::get<std::vector<double>>(taken), kFloat64Array);
}

// Bytes that the library and the allocator take for a value beside its content: an element of a
// growing vector, a node of a map, what is on the heap.
constexpr size_t kValueBytes = 32;
constexpr size_t kMemberBytes = 128;
constexpr size_t kStringBytes = 48;
constexpr size_t kContainerBytes = 64;

// Most bytes of parsed values per byte of text; short texts have a floor (kLeastJsonBytes).
constexpr size_t kJsonGrowthLimit = 16;

// The library's messages look like "[json.exception.parse_error.101] parse error at line 1,
// column 2: syntax error ...; last read: '...'". Its place is that of the reduced text and
// its quotation may be user content of any length, so only the middle is kept.
std::string Problem(std::string_view what) {
  const size_t bracket = what.find("] ");
  if (bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
  const size_t place = what.find(": ");
  if (what.starts_with("parse error") && place != std::string_view::npos) {
    what.remove_prefix(place + 2);
  }
  return std::string(what.substr(0, what.find("; last read")));
}

// A member that is null is as if it were absent.
void DropNulls(json& object) {
  for (auto member = object.begin(); member != object.end();) {
    member = member->is_null() ? object.erase(member) : std::next(member);
  }
}

// Builds the value from the parser's events; every callback returns whether to go on.
class Builder : public nlohmann::json_sax<json> {
 public:
  // `max_bytes`: of all values.
  Builder(ReducedJson& reduced, size_t max_bytes)
      : reduced_(reduced), left_(max_bytes - reduced.bytes) {}

  json Take() { return std::move(root_); }
  const std::string& error() const { return error_; }
  bool too_large() const { return too_large_; }

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override {
    return Spend(kStringBytes + value.size()) && Put(std::move(value));
  }
  bool binary(binary_t&) override { return false; }  // Not part of JSON.

  bool start_object(std::size_t) override { return Open(json::object()); }
  bool end_object() override {
    DropNulls(*open_.back());
    return Close();
  }

  bool start_array(std::size_t) override {
    const size_t ordinal = arrays_seen_++;
    if (next_lifted_ < reduced_.arrays.size() && reduced_.arrays[next_lifted_].ordinal == ordinal) {
      return Open(TakeBinary(reduced_.arrays[next_lifted_++].numbers));
    }
    return Open(json::array());
  }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (!Spend(kMemberBytes + name.size())) return false;
    if (open_.back()->contains(name)) {
      error_ = absl::StrCat("member ", Quoted(name), " appears twice");
      return false;
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    const size_t byte = position == 0 ? 0 : position - 1;
    error_ = absl::StrCat(Problem(exception.what()), " at byte ", reduced_.OriginalPosition(byte));
    return false;
  }

 private:
  json* Place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_object()) {
      json& slot = parent[key_];
      slot = std::move(value);
      return &slot;
    }
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool Spend(size_t bytes) {
    too_large_ = bytes > left_;
    if (!too_large_) left_ -= bytes;
    return !too_large_;
  }

  bool Put(json value) {
    if (!Spend(kValueBytes)) return false;
    Place(std::move(value));
    return true;
  }

  bool Open(json value) {
    if (open_.size() >= kMaxJsonDepth) {
      error_ = absl::StrCat("nested deeper than ", kMaxJsonDepth, " levels");
      return false;
    }
    if (!Spend(kValueBytes + kContainerBytes)) return false;
    open_.push_back(Place(std::move(value)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  ReducedJson& reduced_;
  size_t left_;  // Bytes that values may still take.
  bool too_large_ = false;
  json root_;
  std::vector<json*> open_;  // A parent's elements do not move while a child is open.
  std::string key_;
  std::string error_;
  size_t arrays_seen_ = 0;
  size_t next_lifted_ = 0;
};

}  // namespace

absl::StatusOr<json> ParseJson(std::string_view text, size_t max_bytes) {
  max_bytes = std::max(std::min(max_bytes, kJsonGrowthLimit * text.size()), kLeastJsonBytes);
  ReducedJson reduced = LiftNumberArrays(text, max_bytes);
  if (reduced.too_large) return ValuesTooLarge(max_bytes);
  Builder builder(reduced, max_bytes);
  if (json::sax_parse(reduced.text(), &builder)) return builder.Take();
  if (builder.too_large()) return ValuesTooLarge(max_bytes);
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("body is not valid JSON: ", builder.error()),
                   {.reason = "BAD_JSON", .retry_after = {}, .param = ""});
}

absl::StatusOr<json> ParseObject(std::string_view text, size_t max_bytes) {
  absl::StatusOr<json> body = ParseJson(text, max_bytes);
  if (!body.ok()) return body;
  RETURN_IF_ERROR(ExpectObject(*body));
  return body;
}

}  // namespace longview::server
