#include "server/api/calls/call_totals.h"

#include <algorithm>
#include <cmath>

namespace longview::server {

CallTotals TotalsOf(const std::vector<Completed>& completed) {
  CallTotals out;
  for (const Completed& item : completed) {
    out.usage.input_tokens += item.answer.usage.input_tokens;
    out.usage.output_tokens += item.answer.usage.output_tokens;
    out.usage.cached_tokens += item.answer.usage.cached_tokens;
    out.usage.truncated_tokens += item.answer.usage.truncated_tokens;
    out.queue_seconds = std::max(out.queue_seconds, item.queue_seconds);
    out.compute_seconds = std::max(out.compute_seconds, item.compute_seconds);
    out.total_seconds = std::max(out.total_seconds, item.total_seconds);
    out.batch_items = std::max(out.batch_items, item.batch_items);
  }
  return out;
}

longview::v1::Usage ToUsage(const models::ItemUsage& usage) {
  longview::v1::Usage out;
  out.set_input_tokens(usage.input_tokens);
  out.set_output_tokens(usage.output_tokens);
  out.set_cached_tokens(usage.cached_tokens);
  out.set_truncated_tokens(usage.truncated_tokens);
  out.set_width(usage.width);
  out.set_height(usage.height);
  return out;
}

double ToMicroseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

longview::v1::Timing ToTiming(const CallTotals& totals) {
  longview::v1::Timing out;
  out.set_queue_seconds(ToMicroseconds(totals.queue_seconds));
  out.set_compute_seconds(ToMicroseconds(totals.compute_seconds));
  out.set_total_seconds(ToMicroseconds(totals.total_seconds));
  out.set_batch_items(totals.batch_items);
  return out;
}

}  // namespace longview::server
