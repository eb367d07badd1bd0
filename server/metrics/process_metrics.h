// The unprefixed process_* metrics of every Prometheus client, read from /proc.
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace longview::server {

// Thread-safe; reads /proc on each Collect. A value that cannot be read is left out.
class ProcessMetrics : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace longview::server
