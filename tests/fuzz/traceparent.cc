// The header traceparent: nothing, or identifiers that read back as themselves.
#include <algorithm>
#include <string>
#include <string_view>

#include "server/call_ids.h"
#include "tests/fuzz/fuzz.h"

namespace {

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using longview::server::ParseTraceparent;
  const auto trace = ParseTraceparent(longview::fuzz::AsText(data, size));
  FUZZ_PROMISE(trace.trace_id.empty() == trace.parent_id.empty());
  if (trace.trace_id.empty()) return 0;
  FUZZ_PROMISE(trace.trace_id.size() == 32 && trace.parent_id.size() == 16);
  FUZZ_PROMISE(IsHex(trace.trace_id) && IsHex(trace.parent_id));
  const auto again = ParseTraceparent("00-" + trace.trace_id + "-" + trace.parent_id + "-01");
  FUZZ_PROMISE(again.trace_id == trace.trace_id && again.parent_id == trace.parent_id);
  return 0;
}
