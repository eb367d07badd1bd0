// The metric families of the server: names, help texts and buckets, in one place.
//
// Thread-safe after construction (prometheus-cpp's own locks). Private to server/metrics.
#pragma once

#include <vector>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/metric_family.h"
#include "prometheus/registry.h"

namespace longview::server {

// Boundaries of every histogram of seconds: 0.5 ms to 2 minutes.
const prometheus::Histogram::BucketBoundaries& SecondsBuckets();
const prometheus::Histogram::BucketBoundaries& TokensBuckets();
const prometheus::Histogram::BucketBoundaries& ItemsBuckets();
// For predicted / actual: symmetric about 1 on a logarithmic scale.
const prometheus::Histogram::BucketBoundaries& RatioBuckets();

// Borrows the registry it registers with.
struct Families {
  explicit Families(prometheus::Registry& registry);

  prometheus::Registry& registry;
  // Name, help and type of every family, without series: what a scrape shows of a family that has
  // none so far.
  std::vector<prometheus::MetricFamily> headers;

  using Histograms = prometheus::Family<prometheus::Histogram>;
  using Gauges = prometheus::Family<prometheus::Gauge>;
  using Counters = prometheus::Family<prometheus::Counter>;

  Histograms& request_duration;
  Histograms& queue_duration;
  Histograms& compute_duration;
  Histograms& batch_tokens;
  Histograms& batch_items;
  Histograms& time_to_first_token;
  Histograms& inter_token_latency;
  Histograms& predicted_vs_actual;

  Gauges& queued_requests;
  Gauges& running_requests;
  Gauges& queued_work;
  Gauges& cache_bytes;
  Gauges& cache_kept;
  Gauges& cache_usage;
  Gauges& inter_token_ceiling;
  Gauges& image_plans;
  Gauges& model_memory;
  Gauges& model_load;
  Gauges& model_ready;
  Gauges& padding;
  Gauges& build_info;
  Gauges& device_up;

  Counters& tokens;
  Counters& images;
  Counters& pixels;
  Counters& rejected;
  Counters& cancelled;
  Counters& wasted_tokens;
  Counters& truncated_requests;
  Counters& truncated_tokens;
  Counters& connections_ended;
  Counters& log_lines_dropped;
  Counters& spans_exported;
  Counters& spans_dropped;
};

}  // namespace longview::server
