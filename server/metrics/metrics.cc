#include "server/metrics/metrics.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/text_serializer.h"
#include "server/metrics/families.h"
#include "server/metrics/process_metrics.h"

namespace longview::server {
namespace {

using prometheus::Labels;

constexpr std::array<const char*, 5> kPhases = {"preprocess", "forward", "prefill", "decode",
                                                "postprocess"};
constexpr std::array<const char*, 6> kRejectReasons = {"queue", "memory",   "deadline",
                                                       "auth",  "draining", "quota"};
constexpr std::array<const char*, 2> kStages = {"queued", "running"};
constexpr std::array<const char*, 3> kTokenKinds = {"prompt", "cached", "generated"};
// Why computed tokens helped nobody, as far as it is known before it happens.
constexpr std::array<const char*, 2> kWasteReasons = {"cancelled", "deadline"};

Labels Of(const ModelLabels& model) { return {{"model", model.model}, {"version", model.version}}; }

Labels With(const ModelLabels& model, const char* name, std::string_view value) {
  Labels labels = Of(model);
  labels.emplace(name, value);
  return labels;
}

// Without the buckets of histograms that have observed nothing, most of an idle model's lines.
// Their counts and sums stay.
std::string WithoutEmptyBuckets(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.ends_with("le=\"+Inf\"} 0")) out.append(line).push_back('\n');
  }
  return out;
}

// The counters and histograms of one model, looked up once instead of at every call.
struct Series {
  Series(Families& f, const ModelLabels& model)
      : queue(f.queue_duration.Add(Of(model), SecondsBuckets())),
        truncated_requests(f.truncated_requests.Add(Of(model))),
        truncated_tokens(f.truncated_tokens.Add(Of(model))),
        batch_tokens(f.batch_tokens.Add(Of(model), TokensBuckets())),
        batch_items(f.batch_items.Add(Of(model), ItemsBuckets())),
        first_token(f.time_to_first_token.Add(Of(model), SecondsBuckets())),
        inter_token(f.inter_token_latency.Add(Of(model), SecondsBuckets())),
        ratio(f.predicted_vs_actual.Add(Of(model), RatioBuckets())) {
    for (size_t i = 0; i < kPhases.size(); ++i) {
      compute[i] = &f.compute_duration.Add(With(model, "phase", kPhases[i]), SecondsBuckets());
    }
    for (size_t i = 0; i < kStages.size(); ++i) {
      cancelled[i] = &f.cancelled.Add(With(model, "stage", kStages[i]));
    }
    for (size_t i = 0; i < kTokenKinds.size(); ++i) {
      tokens[i] = &f.tokens.Add(With(model, "kind", kTokenKinds[i]));
    }
    for (const char* reason : kWasteReasons) f.wasted_tokens.Add(With(model, "reason", reason));
    for (size_t i = 0; i < kRejectReasons.size(); ++i) {
      const auto reason = static_cast<RejectReason>(i);
      if (reason == RejectReason::kAuth || reason == RejectReason::kQuota) continue;
      f.rejected.Add(With(model, "reason", kRejectReasons[i]));
    }
    f.images.Add(Of(model));
    f.pixels.Add(Of(model));
    for (Families::Gauges* gauge :
         {&f.queued_requests, &f.running_requests, &f.queued_work, &f.cache_bytes, &f.cache_kept,
          &f.cache_usage, &f.inter_token_ceiling, &f.image_plans, &f.padding}) {
      gauge->Add(Of(model));
    }
  }

  prometheus::Histogram& queue;
  prometheus::Counter& truncated_requests;
  prometheus::Counter& truncated_tokens;
  prometheus::Histogram& batch_tokens;
  prometheus::Histogram& batch_items;
  prometheus::Histogram& first_token;
  prometheus::Histogram& inter_token;
  prometheus::Histogram& ratio;
  std::array<prometheus::Histogram*, kPhases.size()> compute;
  std::array<prometheus::Counter*, kStages.size()> cancelled;
  std::array<prometheus::Counter*, kTokenKinds.size()> tokens;
};

using Key = std::pair<std::string, std::string>;
// Method and api are static strings (CallInfo).
using RequestKey = std::tuple<Series*, std::string_view, std::string_view, absl::StatusCode>;

}  // namespace

class Metrics::Impl {
 public:
  Impl(std::string version, std::string commit, std::string device) : families(registry) {
    families.build_info
        .Add({{"version", std::move(version)},
              {"commit", std::move(commit)},
              {"device", std::move(device)}})
        .Set(1);
    families.rejected.Add({{"reason", kRejectReasons[static_cast<int>(RejectReason::kAuth)]}});
  }

  // The model's labels if the server knows it, else empty ones: names come from requests.
  ModelLabels Known(const ModelLabels& model) const {
    absl::ReaderMutexLock lock(&mutex);
    return models.contains(Key(model.model, model.version)) ? model : ModelLabels{};
  }

  // Null for a model that was never loaded.
  Series* Find(const ModelLabels& model) const {
    absl::ReaderMutexLock lock(&mutex);
    const auto it = models.find(Key(model.model, model.version));
    return it == models.end() ? nullptr : it->second.get();
  }

  // The histogram of one kind of request; `series` null for names the server does not know.
  prometheus::Histogram& RequestHistogram(const ModelLabels& model, std::string_view api,
                                          std::string_view method, absl::StatusCode code) {
    Series* series = Find(model);
    const RequestKey key(series, api, method, code);
    {
      absl::ReaderMutexLock lock(&mutex);
      const auto it = requests.find(key);
      if (it != requests.end()) return *it->second;
    }
    Labels labels = Of(series ? model : ModelLabels{});
    labels.emplace("api", api);
    labels.emplace("method", method);
    labels.emplace("code", absl::StatusCodeToString(code));
    prometheus::Histogram& histogram = families.request_duration.Add(labels, SecondsBuckets());
    absl::MutexLock lock(&mutex);
    requests.emplace(key, &histogram);
    return histogram;
  }

  // Reads the gauges without the lock: the reader takes locks of the scheduler, which counts
  // here while it holds them.
  void RefreshGauges() {
    std::function<SchedulerGauges(const ModelLabels&)> read;
    std::function<std::optional<CacheGauges>(const ModelLabels&)> read_caches;
    std::function<double(const ModelLabels&)> read_plans;
    std::vector<ModelLabels> loaded;
    {
      absl::ReaderMutexLock lock(&mutex);
      read = read_gauges;
      read_caches = read_cache_gauges;
      read_plans = read_plan_bytes;
      for (const auto& [key, series] : models) loaded.push_back({key.first, key.second});
    }
    for (const ModelLabels& model : loaded) {
      const SchedulerGauges now = read ? read(model) : SchedulerGauges{};
      families.queued_requests.Add(Of(model)).Set(now.queued_requests);
      families.running_requests.Add(Of(model)).Set(now.running_requests);
      families.queued_work.Add(Of(model)).Set(now.queued_work_seconds);
      families.image_plans.Add(Of(model)).Set(read_plans ? read_plans(model) : 0);
      const std::optional<CacheGauges> cache = read_caches ? read_caches(model) : std::nullopt;
      if (!cache) continue;
      families.cache_bytes.Add(Of(model)).Set(cache->used);
      families.cache_kept.Add(Of(model)).Set(cache->kept);
      const double ratio = cache->capacity > 0 ? cache->used_by_all / cache->capacity : 0;
      families.cache_usage.Add(Of(model)).Set(ratio);
      families.inter_token_ceiling.Add(Of(model)).Set(now.inter_token_ceiling_seconds);
    }
  }

  // The library's counters only grow by what they are told.
  void RefreshCounts() {
    std::function<ExportCounts()> read;
    {
      absl::ReaderMutexLock lock(&mutex);
      read = read_export_counts;
    }
    absl::MutexLock lock(&counts_mutex);
    const ExportCounts now = read ? read() : ExportCounts();
    const auto raise = [](prometheus::Counter& counter, uint64_t value) {
      const double more = static_cast<double>(value) - counter.Value();
      if (more > 0) counter.Increment(more);
    };
    raise(families.log_lines_dropped.Add({}), now.dropped_log_lines);
    raise(families.spans_exported.Add({}), now.exported_spans);
    raise(families.spans_dropped.Add({}), now.dropped_spans);
  }

  prometheus::Registry registry;
  Families families;
  ProcessMetrics process;

  mutable absl::Mutex mutex;
  absl::flat_hash_map<Key, std::unique_ptr<Series>> models ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<RequestKey, prometheus::Histogram*> requests ABSL_GUARDED_BY(mutex);
  std::function<SchedulerGauges(const ModelLabels&)> read_gauges ABSL_GUARDED_BY(mutex);
  std::function<std::optional<CacheGauges>(const ModelLabels&)> read_cache_gauges
      ABSL_GUARDED_BY(mutex);
  std::function<double(const ModelLabels&)> read_plan_bytes ABSL_GUARDED_BY(mutex);
  std::function<ExportCounts()> read_export_counts ABSL_GUARDED_BY(mutex);
  absl::Mutex counts_mutex;  // One scrape at a time raises the counters.
};

Metrics::Metrics(std::string version, std::string commit, std::string device)
    : impl_(std::make_unique<Impl>(std::move(version), std::move(commit), std::move(device))) {}
Metrics::~Metrics() = default;

void Metrics::ModelLoaded(const ModelLabels& model, double memory_bytes, double load_seconds) {
  Families& f = impl_->families;
  {
    absl::MutexLock lock(&impl_->mutex);
    std::unique_ptr<Series>& series = impl_->models[Key(model.model, model.version)];
    if (!series) series = std::make_unique<Series>(f, model);
  }
  // The two methods every model answers, whatever its task.
  impl_->RequestHistogram(model, "grpc", "ModelInfer", absl::StatusCode::kOk);
  impl_->RequestHistogram(model, "http", "/v2/models/{m}/infer", absl::StatusCode::kOk);
  f.model_memory.Add(Of(model)).Set(memory_bytes);
  f.model_load.Add(Of(model)).Set(load_seconds);
  f.model_ready.Add(Of(model)).Set(1);
}

void Metrics::ModelUnloaded(const ModelLabels& model) {
  if (!impl_->Find(model)) return;
  impl_->families.model_ready.Add(Of(model)).Set(0);
  impl_->families.model_memory.Add(Of(model)).Set(0);
}

void Metrics::DeviceUp(std::string_view device, bool up) {
  impl_->families.device_up.Add({{"device", std::string(device)}}).Set(up ? 1 : 0);
}

void Metrics::SetSchedulerGauges(std::function<SchedulerGauges(const ModelLabels&)> read) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->read_gauges = std::move(read);
}

void Metrics::SetCacheGauges(std::function<std::optional<CacheGauges>(const ModelLabels&)> read) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->read_cache_gauges = std::move(read);
}

void Metrics::SetPlanBytes(std::function<double(const ModelLabels&)> read) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->read_plan_bytes = std::move(read);
}

void Metrics::SetExportCounts(std::function<ExportCounts()> read) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->read_export_counts = std::move(read);
}

void Metrics::RequestDone(const ModelLabels& model, std::string_view api, std::string_view method,
                          absl::StatusCode code, double seconds) {
  impl_->RequestHistogram(model, api, method, code).Observe(seconds);
}

void Metrics::Queued(const ModelLabels& model, double seconds) {
  if (Series* series = impl_->Find(model)) series->queue.Observe(seconds);
}

void Metrics::Computed(const ModelLabels& model, Phase phase, double seconds) {
  if (Series* series = impl_->Find(model)) {
    series->compute[static_cast<size_t>(phase)]->Observe(seconds);
  }
}

void Metrics::Batch(const ModelLabels& model, int items, int64_t tokens, double predicted_seconds,
                    double actual_seconds) {
  Series* series = impl_->Find(model);
  if (!series) return;
  series->batch_items.Observe(items);
  series->batch_tokens.Observe(static_cast<double>(tokens));
  if (actual_seconds > 0) series->ratio.Observe(predicted_seconds / actual_seconds);
}

void Metrics::Stepped(const ModelLabels& model, const StepNumbers& step) {
  Series* series = impl_->Find(model);
  if (!series) return;
  series->batch_items.Observe(step.items);
  series->batch_tokens.Observe(static_cast<double>(step.tokens));
  if (step.predicted_seconds > 0 && step.seconds > 0) {
    series->ratio.Observe(step.predicted_seconds / step.seconds);
  }
  if (step.prefill_seconds > 0) {
    series->compute[static_cast<size_t>(Phase::kPrefill)]->Observe(step.prefill_seconds);
  }
  if (step.decode_seconds > 0) {
    series->compute[static_cast<size_t>(Phase::kDecode)]->Observe(step.decode_seconds);
  }
  for (const double seconds : step.first_tokens) series->first_token.Observe(seconds);
  for (const double seconds : step.gaps) series->inter_token.Observe(seconds);
  if (step.generated > 0) Tokens(model, "generated", step.generated);
}

void Metrics::Tokens(const ModelLabels& model, std::string_view kind, int64_t tokens) {
  Series* series = impl_->Find(model);
  const auto known = std::find(kTokenKinds.begin(), kTokenKinds.end(), kind);
  if (!series || known == kTokenKinds.end()) return;
  series->tokens[static_cast<size_t>(known - kTokenKinds.begin())]->Increment(
      static_cast<double>(tokens));
}

void Metrics::Rejected(const ModelLabels& model, RejectReason reason) {
  const char* name = kRejectReasons[static_cast<size_t>(reason)];
  const Labels labels = reason == RejectReason::kAuth ? Labels{{"reason", name}}
                                                      : With(impl_->Known(model), "reason", name);
  impl_->families.rejected.Add(labels).Increment();
}

void Metrics::Cancelled(const ModelLabels& model, CancelStage stage) {
  if (Series* series = impl_->Find(model)) {
    series->cancelled[static_cast<size_t>(stage)]->Increment();
  }
}

void Metrics::Truncated(const ModelLabels& model, int64_t tokens) {
  Series* const series = impl_->Find(model);
  if (series == nullptr) return;
  series->truncated_requests.Increment();
  series->truncated_tokens.Increment(static_cast<double>(tokens));
}

void Metrics::ConnectionEnded(std::string_view transport, std::string_view reason) {
  impl_->families.connections_ended
      .Add({{"transport", std::string(transport)}, {"reason", std::string(reason)}})
      .Increment();
}

void Metrics::WastedTokens(const ModelLabels& model, std::string_view reason, int64_t tokens) {
  impl_->families.wasted_tokens.Add(With(impl_->Known(model), "reason", reason))
      .Increment(static_cast<double>(tokens));
}

std::string Metrics::Serialize() const {
  impl_->RefreshGauges();
  impl_->RefreshCounts();
  std::ostringstream out;
  const prometheus::TextSerializer serializer;
  // Families without series are left out by the library; dashboards look for their names.
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  absl::flat_hash_set<std::string> seen;
  for (const prometheus::MetricFamily& family : families) seen.insert(family.name);
  for (const prometheus::MetricFamily& header : impl_->families.headers) {
    if (!seen.contains(header.name)) families.push_back(header);
  }
  for (prometheus::MetricFamily& family : families) {
    for (prometheus::ClientMetric& metric : family.metric) {
      if (metric.histogram.sample_count == 0) metric.histogram.bucket.clear();
    }
  }
  serializer.Serialize(out, families);
  serializer.Serialize(out, impl_->process.Collect());
  // The serializer gives every histogram a last bucket. With that alone, the first observation
  // would look like one above all buckets.
  return WithoutEmptyBuckets(std::move(out).str());
}

}  // namespace longview::server
