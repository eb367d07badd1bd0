#include "server/http/json/number_arrays.h"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

namespace longview::server {
namespace {

// Below this the general parser is as quick as cutting.
constexpr size_t kMinElements = 8;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

const char* SkipSpace(const char* at, const char* end) {
  while (at != end && IsSpace(*at)) ++at;
  return at;
}

// Past the digits; `at` itself if there are none.
const char* SkipDigits(const char* at, const char* end) {
  while (at != end && IsDigit(*at)) ++at;
  return at;
}

// A number of the JSON grammar; `end` is null if there is none.
struct Number {
  const char* end = nullptr;
  bool is_integer = false;
  bool fits = false;  // `integer` holds its value.
  int64_t integer = 0;
};

// The integer part; from_chars takes over where it might overflow.
Number ReadInteger(const char* begin, const char* end) {
  constexpr ptrdiff_t kSafeDigits = 18;
  const char* at = begin;
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  const char* digits = at;
  uint64_t magnitude = 0;
  for (; at != end && IsDigit(*at); ++at) {
    magnitude = magnitude * 10 + static_cast<uint64_t>(*at - '0');
  }
  const ptrdiff_t count = at - digits;
  if (count == 0 || (*digits == '0' && count > 1)) return {};
  Number number{at, true, true, 0};
  if (count <= kSafeDigits) {
    const auto value = static_cast<int64_t>(magnitude);
    number.integer = negative ? -value : value;
  } else {
    number.fits = std::from_chars(begin, at, number.integer).ec == std::errc();
  }
  return number;
}

Number ReadNumber(const char* begin, const char* end) {
  Number number = ReadInteger(begin, end);
  const char* at = number.end;
  if (!at || at == end || (*at != '.' && *at != 'e' && *at != 'E')) return number;
  number.is_integer = false;
  if (*at == '.') {
    const char* fraction = at + 1;
    at = SkipDigits(fraction, end);
    if (at == fraction) return {};
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end && (*at == '+' || *at == '-')) ++at;
    const char* exponent = at;
    at = SkipDigits(exponent, end);
    if (at == exponent) return {};
  }
  number.end = at;
  return number;
}

constexpr size_t kNumberBytes = sizeof(int64_t);
static_assert(kNumberBytes == sizeof(double));

// Collects integers until the first number that is not one, doubles from there on.
class NumberList {
 public:
  // False if the number does not fit its type.
  bool Add(const char* begin, const Number& number) {
    if (number.is_integer && doubles_.empty()) {
      integers_.push_back(number.integer);
      return number.fits;
    }
    if (doubles_.empty()) doubles_.assign(integers_.begin(), integers_.end());
    double value = 0;
    if (std::from_chars(begin, number.end, value).ec != std::errc()) return false;
    doubles_.push_back(value);
    return true;
  }

  size_t size() const { return doubles_.empty() ? integers_.size() : doubles_.size(); }

  Numbers Take() {
    if (doubles_.empty()) return std::move(integers_);
    return std::move(doubles_);
  }

 private:
  std::vector<int64_t> integers_;
  std::vector<double> doubles_;
};

struct NumberArray {
  const char* end;  // Past ']'; null: there are more numbers than allowed.
  size_t size;
  Numbers numbers;
};

// The array whose '[' is just before `at`, if it is one of numbers only and long enough.
std::optional<NumberArray> ParseNumberArray(const char* at, const char* end, size_t max_size) {
  NumberList list;
  while (true) {
    if (list.size() > max_size) return NumberArray{nullptr, list.size(), {}};
    at = SkipSpace(at, end);
    const Number number = ReadNumber(at, end);
    if (!number.end || !list.Add(at, number)) return std::nullopt;
    at = SkipSpace(number.end, end);
    if (at == end) return std::nullopt;
    if (*at == ']') break;
    if (*at++ != ',') return std::nullopt;
  }
  if (list.size() < kMinElements) return std::nullopt;
  const size_t size = list.size();
  return NumberArray{at + 1, size, list.Take()};
}

// Past the string whose opening quote is just before `at`.
const char* SkipString(const char* at, const char* end) {
  while (at != end && *at != '"') at += (*at == '\\' && at + 1 != end) ? 2 : 1;
  return at == end ? end : at + 1;
}

}  // namespace

size_t ReducedJson::OriginalPosition(size_t position) const {
  size_t removed = 0;
  for (const LiftedArray& array : arrays) {
    if (array.text_end > position) break;
    removed += array.removed;
  }
  return position + removed;
}

ReducedJson LiftNumberArrays(std::string_view json, size_t max_bytes) {
  ReducedJson reduced;
  reduced.original = json;
  size_t ordinal = 0;
  const char* const end = json.data() + json.size();
  const char* kept = json.data();  // Everything before it is in reduced.text.
  for (const char* at = json.data(); at != end;) {
    const char c = *at++;
    if (c == '"') {
      at = SkipString(at, end);
    } else if (c == '[') {
      const size_t room = (max_bytes - reduced.bytes) / kNumberBytes;
      if (auto array = ParseNumberArray(at, end, room)) {
        reduced.bytes += array->size * kNumberBytes;
        reduced.too_large = array->end == nullptr || reduced.bytes > max_bytes;
        if (reduced.too_large) return reduced;
        reduced.kept.append(kept, at);
        reduced.kept += ']';
        const size_t removed = static_cast<size_t>(array->end - at) - 1;
        reduced.arrays.push_back(
            {ordinal, reduced.kept.size(), removed, std::move(array->numbers)});
        kept = at = array->end;
      }
      ++ordinal;
    }
  }
  if (!reduced.arrays.empty()) reduced.kept.append(kept, end);
  return reduced;
}

}  // namespace longview::server
