#include "server/metrics/families.h"

#include <string>

namespace longview::server {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Registry;

Families::Histograms& Histogram(Registry& registry, const char* name, const char* help) {
  return BuildHistogram().Name(std::string("longview_") + name).Help(help).Register(registry);
}

Families::Gauges& Gauge(Registry& registry, const char* name, const char* help) {
  return BuildGauge().Name(std::string("longview_") + name).Help(help).Register(registry);
}

Families::Counters& Counter(Registry& registry, const char* name, const char* help) {
  return BuildCounter().Name(std::string("longview_") + name).Help(help).Register(registry);
}

}  // namespace

const prometheus::Histogram::BucketBoundaries& SecondsBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
  return buckets;
}

const prometheus::Histogram::BucketBoundaries& TokensBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      1, 16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
  return buckets;
}

const prometheus::Histogram::BucketBoundaries& ItemsBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  return buckets;
}

const prometheus::Histogram::BucketBoundaries& RatioBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      0.1, 0.25, 0.5, 0.667, 0.8, 0.909, 1, 1.1, 1.25, 1.5, 2, 4, 10};
  return buckets;
}

Families::Families(Registry& r)
    : request_duration(Histogram(r, "request_duration_seconds",
                                 "Time from a request's arrival to its answer, by transport, "
                                 "method and gRPC code.")),
      queue_duration(Histogram(r, "queue_duration_seconds",
                               "Time an item waited from admission to the start of its batch.")),
      compute_duration(Histogram(r, "compute_duration_seconds",
                                 "Time spent working on an item or a batch, by phase.")),
      batch_tokens(Histogram(r, "batch_tokens", "Tokens in a batch.")),
      batch_items(Histogram(r, "batch_items", "Items in a batch.")),
      time_to_first_token(Histogram(r, "time_to_first_token_seconds",
                                    "Time from a generation request's arrival to its first "
                                    "token.")),
      inter_token_latency(Histogram(r, "inter_token_latency_seconds",
                                    "Time between neighbouring tokens of one sequence.")),
      predicted_vs_actual(Histogram(r, "predicted_vs_actual_ratio",
                                    "Predicted seconds of a batch over the seconds it took.")),
      queued_requests(Gauge(r, "queued_requests", "Items admitted and waiting.")),
      running_requests(Gauge(r, "running_requests", "Items in a batch that is being computed.")),
      queued_work(Gauge(r, "queued_work_seconds", "Predicted compute seconds of waiting items.")),
      cache_bytes(Gauge(r, "generation_cache_bytes", "Bytes of generation state in use.")),
      cache_usage(Gauge(r, "generation_cache_usage_ratio",
                        "Generation state in use over the room there is, 0 to 1.")),
      model_memory(Gauge(r, "model_memory_bytes", "Resident bytes of a model's weights.")),
      model_load(Gauge(r, "model_load_seconds", "How long the last load and warm-up took.")),
      model_ready(Gauge(r, "model_ready", "1 if the model answers requests, else 0.")),
      padding(Gauge(r, "padding_ratio",
                    "Computed tokens that are padding over all computed tokens; 0 as batches are "
                    "ragged.")),
      build_info(Gauge(r, "build_info", "Always 1; the labels say what is running.")),
      tokens(Counter(r, "tokens_total",
                     "Tokens by kind: prompt (read), cached (prompt tokens found in the cache), "
                     "generated.")),
      images(Counter(r, "images_total", "Images decoded for inference.")),
      pixels(Counter(r, "pixels_total", "Pixels of the images decoded for inference.")),
      rejected(Counter(r, "rejected_total", "Requests refused before any compute, by reason.")),
      cancelled(Counter(r, "cancelled_total",
                        "Requests whose caller left or whose deadline passed, by the stage they "
                        "were in.")),
      wasted_tokens(Counter(r, "wasted_tokens_total", "Tokens computed for nobody, by reason.")) {}

}  // namespace longview::server
