#include "server/metrics/families.h"

#include <string>

namespace longview::server {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Registry;

std::string Describe(Families& families, const char* name, const char* help,
                     prometheus::MetricType type) {
  prometheus::MetricFamily& header = families.headers.emplace_back();
  header.name = std::string("longview_") + name;
  header.help = help;
  header.type = type;
  return header.name;
}

Families::Histograms& Histogram(Families& families, const char* name, const char* help) {
  return BuildHistogram()
      .Name(Describe(families, name, help, prometheus::MetricType::Histogram))
      .Help(help)
      .Register(families.registry);
}

Families::Gauges& Gauge(Families& families, const char* name, const char* help) {
  return BuildGauge()
      .Name(Describe(families, name, help, prometheus::MetricType::Gauge))
      .Help(help)
      .Register(families.registry);
}

Families::Counters& Counter(Families& families, const char* name, const char* help) {
  return BuildCounter()
      .Name(Describe(families, name, help, prometheus::MetricType::Counter))
      .Help(help)
      .Register(families.registry);
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
    : registry(r),
      request_duration(Histogram(*this, "request_duration_seconds",
                                 "Time from a request's arrival to its answer, by transport, "
                                 "method and gRPC code.")),
      queue_duration(Histogram(*this, "queue_duration_seconds",
                               "Time an item waited from admission to the start of its batch.")),
      compute_duration(Histogram(*this, "compute_duration_seconds",
                                 "Time spent working on an item or a batch, by phase.")),
      batch_tokens(Histogram(*this, "batch_tokens", "Tokens in a batch.")),
      batch_items(Histogram(*this, "batch_items", "Items in a batch.")),
      time_to_first_token(Histogram(*this, "time_to_first_token_seconds",
                                    "Time from a generation request's arrival to its first "
                                    "token.")),
      inter_token_latency(Histogram(*this, "inter_token_latency_seconds",
                                    "Time between neighbouring tokens of one sequence.")),
      predicted_vs_actual(Histogram(*this, "predicted_vs_actual_ratio",
                                    "Predicted seconds of a batch over the seconds it took.")),
      queued_requests(Gauge(*this, "queued_requests", "Items admitted and waiting.")),
      running_requests(
          Gauge(*this, "running_requests", "Items in a batch that is being computed.")),
      queued_work(
          Gauge(*this, "queued_work_seconds", "Predicted compute seconds of waiting items.")),
      cache_bytes(Gauge(*this, "generation_cache_bytes",
                        "Bytes of generation state that the model's sequences "
                        "and documents use.")),
      cache_kept(Gauge(*this, "generation_cache_kept_bytes",
                       "Bytes of generation state kept for prompts that may come again; given up "
                       "where sequences and documents need them.")),
      cache_usage(Gauge(*this, "generation_cache_usage_ratio",
                        "Generation state in use over the room there is, 0 to 1; of all "
                        "models that share the room.")),
      inter_token_ceiling(Gauge(*this, "inter_token_ceiling_seconds",
                                "Longest time between neighbouring tokens that steps are planned "
                                "for; compare inter_token_latency_seconds.")),
      image_plans(Gauge(*this, "image_plan_bytes",
                        "Bytes that a model keeps of what it planned for sizes of pictures, at "
                        "most --image_plan_bytes.")),
      model_memory(Gauge(*this, "model_memory_bytes", "Resident bytes of a model's weights.")),
      model_load(Gauge(*this, "model_load_seconds", "How long the last load and warm-up took.")),
      model_ready(Gauge(*this, "model_ready", "1 if the model answers requests, else 0.")),
      padding(Gauge(*this, "padding_ratio",
                    "Computed tokens that are padding over all computed tokens; 0 as batches are "
                    "ragged.")),
      build_info(Gauge(*this, "build_info", "Always 1; the labels say what is running.")),
      device_up(Gauge(*this, "device_up", "1 if a device computes, 0 once it is lost.")),
      tokens(Counter(*this, "tokens_total",
                     "Tokens by kind: prompt (read), cached (prompt tokens found in the cache), "
                     "generated.")),
      images(Counter(*this, "images_total", "Images decoded for inference.")),
      pixels(Counter(*this, "pixels_total", "Pixels of the images decoded for inference.")),
      rejected(Counter(*this, "rejected_total", "Requests refused before any compute, by reason.")),
      cancelled(Counter(*this, "cancelled_total",
                        "Requests whose caller left or whose deadline passed, by the stage they "
                        "were in.")),
      wasted_tokens(
          Counter(*this, "wasted_tokens_total", "Tokens computed for nobody, by reason.")),
      truncated_requests(Counter(*this, "truncated_requests_total",
                                 "Requests admitted with less than their text, as they asked.")),
      truncated_tokens(
          Counter(*this, "truncated_tokens_total", "Tokens cut from requests that were admitted.")),
      connections_ended(Counter(*this, "connections_ended_total",
                                "Connections that the server refused or closed by itself, by "
                                "transport and reason.")),
      log_lines_dropped(
          Counter(*this, "log_lines_dropped_total", "Log lines lost because stderr took no more.")),
      spans_exported(
          Counter(*this, "spans_exported_total", "Spans that the trace collector took.")),
      spans_dropped(Counter(*this, "spans_dropped_total",
                            "Spans lost because the trace collector was slow, away or refused "
                            "them.")) {}

}  // namespace longview::server
