// Every metric of the server, by the names users see. Wraps prometheus-cpp; no other file
// of the server includes it.
//
// Thread-safe; no call blocks on anything but short locks. Gauges of the scheduler are read
// at scrape time, on the scraping thread. Names come from requests, so a model that was never
// loaded is counted under "" where the request as a whole counts, and not at all elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace longview::server {

// Labels of a model's series; a name the server does not know is "".
struct ModelLabels {
  std::string model;
  std::string version;
};

enum class Phase { kPreprocess, kForward, kPrefill, kDecode, kPostprocess };
// kQuota, of a key's own limits, has no series before the first.
enum class RejectReason { kQueue, kMemory, kDeadline, kAuth, kDraining, kQuota };
enum class CancelStage { kQueued, kRunning };

// Read at scrape time. Runs on the scraping thread; must not block for long.
struct SchedulerGauges {
  double queued_requests = 0;
  double running_requests = 0;
  double queued_work_seconds = 0;
  double inter_token_ceiling_seconds = 0;  // For generators; plans of steps keep it.
};

// Memory for generation state, bytes; read at scrape time.
struct CacheGauges {
  double used = 0;         // Bytes in use by the model.
  double kept = 0;         // Bytes kept, beside `used`, for prompts that may come again.
  double used_by_all = 0;  // Bytes in use by all models that share the capacity.
  double capacity = 0;
};

// Counters of logs and spans since the start; read at scrape time.
struct ExportCounts {
  uint64_t dropped_log_lines = 0;
  uint64_t exported_spans = 0;
  uint64_t dropped_spans = 0;
};

// A step of a generating model, as one sample.
struct StepNumbers {
  int items = 0;
  int64_t tokens = 0;     // Read and sampled.
  int64_t generated = 0;  // The sampled ones among these.
  double seconds = 0;
  double predicted_seconds = 0;      // 0 = does not count (calls were dropped on the way).
  double prefill_seconds = 0;        // Part of `seconds` for prefill.
  double decode_seconds = 0;         // Part of `seconds` for decoding.
  std::vector<double> first_tokens;  // Seconds since the arrival of calls that got their first.
  std::vector<double> gaps;          // All other sequences: seconds since their token before.
};

class Metrics {
 public:
  // Constant labels of build_info.
  Metrics(std::string version, std::string commit, std::string device);
  ~Metrics();

  // A model's series exist at 0 from load, and stay after unload with model_ready 0.
  void ModelLoaded(const ModelLabels& model, double memory_bytes, double load_seconds);
  void ModelUnloaded(const ModelLabels& model);
  // Whether a device works; it has a series from the first call.
  void DeviceUp(std::string_view device, bool up);
  // Replaces the reader of queue gauges; an empty one detaches it (before its owner dies).
  void SetSchedulerGauges(std::function<SchedulerGauges(const ModelLabels&)> read);
  // Replaces the reader of generation state, which gives nothing for models that do not generate.
  void SetCacheGauges(std::function<std::optional<CacheGauges>(const ModelLabels&)> read);
  // Replaces the reader of the bytes that image models keep of their plans.
  void SetPlanBytes(std::function<double(const ModelLabels&)> read);

  // Replaces the reader of the counts of the log and the tracer.
  void SetExportCounts(std::function<ExportCounts()> read);

  // `api` and `method` are static strings, as in CallInfo.
  void RequestDone(const ModelLabels& model, std::string_view api, std::string_view method,
                   absl::StatusCode code, double seconds);
  void Queued(const ModelLabels& model, double seconds);
  void Computed(const ModelLabels& model, Phase phase, double seconds);
  void Batch(const ModelLabels& model, int items, int64_t tokens, double predicted_seconds,
             double actual_seconds);
  void Stepped(const ModelLabels& model, const StepNumbers& step);
  // `kind` is prompt, cached or generated.
  void Tokens(const ModelLabels& model, std::string_view kind, int64_t tokens);
  void Rejected(const ModelLabels& model, RejectReason reason);
  void Cancelled(const ModelLabels& model, CancelStage stage);
  void WastedTokens(const ModelLabels& model, std::string_view reason, int64_t tokens);

  // A request was admitted without so many of its tokens.
  void Truncated(const ModelLabels& model, int64_t tokens);

  // The server refused or closed a connection. `transport` and `reason` are few, fixed words.
  void ConnectionEnded(std::string_view transport, std::string_view reason);

  // Exposition format text 0.0.4, process metrics included.
  std::string Serialize() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longview::server
