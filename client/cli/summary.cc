#include "client/cli/summary.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longview::client {
namespace {

// 1234567 as "1,234,567".
std::string WithCommas(int64_t number) {
  if (number < 1000) return absl::StrCat(number);
  return absl::StrFormat("%s,%03d", WithCommas(number / 1000), number % 1000);
}

std::string Are(int64_t count) {
  return absl::StrCat(WithCommas(count), count == 1 ? " is " : " are ");
}

}  // namespace

void Summary::Add(const Outcome& outcome) {
  ++inputs_;
  tokens_ += outcome.tokens;
  cut_ += outcome.truncated_tokens > 0 ? 1 : 0;
  if (outcome.status.ok()) return;
  ++failed_;
  const std::string& message = outcome.status.error_message();
  if (absl::StrContains(message, "--lossy")) ++not_utf8_;
  if (absl::StrContains(message, "\"truncate\" cuts")) ++too_long_;
}

std::string Summary::Text(double seconds) const {
  std::string text = absl::StrCat(WithCommas(inputs_), " inputs");
  if (tokens_ > 0) absl::StrAppend(&text, ", ", WithCommas(tokens_), " tokens");
  absl::StrAppendFormat(&text, " in %.1f s", seconds);
  if (tokens_ > 0) {
    const double rate = static_cast<double>(tokens_) / std::max(seconds, 1e-3);
    absl::StrAppend(&text, " (", WithCommas(static_cast<int64_t>(rate)), " a second)");
  }
  if (cut_ > 0) absl::StrAppend(&text, "; ", WithCommas(cut_), " cut to the model's limit");
  if (failed_ == 0) return text;
  absl::StrAppend(&text, "; ", WithCommas(failed_), " failed");
  std::string why;
  if (too_long_ > 0) absl::StrAppend(&why, Are(too_long_), "too long (--truncate cuts them)");
  if (not_utf8_ > 0) {
    absl::StrAppend(&why, why.empty() ? "" : ", ", Are(not_utf8_),
                    "not UTF-8 (--lossy replaces what is invalid)");
  }
  if (!why.empty()) absl::StrAppend(&text, ": ", why);
  return text;
}

}  // namespace longview::client
