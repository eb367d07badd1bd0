// Sums usage and timing over the answered items of one call, as its client is told.
#pragma once

#include <vector>

#include "longview/v1/types.pb.h"
#include "server/engine/engine.h"

namespace longview::server {

struct CallTotals {
  models::ItemUsage usage;   // Tokens summed.
  double queue_seconds = 0;  // The longest, as the next two.
  double compute_seconds = 0;
  double total_seconds = 0;
  int batch_items = 0;  // The most.
};

CallTotals TotalsOf(const std::vector<Completed>& completed);

// Rounded: what is below is not measured.
double ToMicroseconds(double seconds);

longview::v1::Usage ToUsage(const models::ItemUsage& usage);
longview::v1::Timing ToTiming(const CallTotals& totals);

}  // namespace longview::server
