// Counters behind ModelStatistics of the Open Inference Protocol.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "inference/grpc_service.pb.h"
#include "server/engine/engine.h"

namespace longview::server {

// Counts since the server started; a model keeps its counts over reloads. Thread-safe.
class StatisticsBook {
 public:
  // One answered item.
  void ItemDone(std::string_view model, std::string_view version, const Completed& item);
  // One request refused or failed after its model was found.
  void RequestFailed(std::string_view model, std::string_view version, double seconds);

  inference::ModelStatistics Get(std::string_view model, std::string_view version) const;

 private:
  struct Duration {
    uint64_t count = 0;
    double seconds = 0;
    void Add(double value);
    void Write(inference::StatisticDuration* out) const;
  };
  struct Entry {
    Duration success, fail, queue, prepare, compute;
    std::map<int, Duration> by_batch_size;  // One sample per item.
    int64_t last_inference_ms = 0;
  };

  Entry& At(std::string_view model, std::string_view version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
