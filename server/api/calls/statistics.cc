#include "server/api/calls/statistics.h"

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"

namespace longview::server {

void StatisticsBook::Duration::Add(double value) {
  ++count;
  seconds += std::max(value, 0.0);
}

void StatisticsBook::Duration::Write(inference::StatisticDuration* out) const {
  out->set_count(count);
  out->set_ns(static_cast<uint64_t>(seconds * 1e9));
}

StatisticsBook::Entry& StatisticsBook::At(std::string_view model, std::string_view version) {
  return entries_[{std::string(model), std::string(version)}];
}

void StatisticsBook::ItemDone(std::string_view model, std::string_view version,
                              const Completed& item) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = At(model, version);
  entry.success.Add(item.total_seconds);
  entry.queue.Add(item.queue_seconds);
  entry.prepare.Add(item.total_seconds - item.queue_seconds - item.compute_seconds);
  entry.compute.Add(item.compute_seconds);
  entry.by_batch_size[std::max(item.batch_items, 1)].Add(item.compute_seconds);
  entry.last_inference_ms = absl::ToUnixMillis(absl::Now());
}

void StatisticsBook::RequestFailed(std::string_view model, std::string_view version,
                                   double seconds) {
  absl::MutexLock lock(&mutex_);
  At(model, version).fail.Add(seconds);
}

inference::ModelStatistics StatisticsBook::Get(std::string_view model,
                                               std::string_view version) const {
  inference::ModelStatistics out;
  out.set_name(std::string(model));
  out.set_version(std::string(version));
  auto* stats = out.mutable_inference_stats();
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find({std::string(model), std::string(version)});
  const Entry entry = found == entries_.end() ? Entry{} : found->second;
  out.set_last_inference(entry.last_inference_ms);
  out.set_inference_count(entry.success.count);
  entry.success.Write(stats->mutable_success());
  entry.fail.Write(stats->mutable_fail());
  entry.queue.Write(stats->mutable_queue());
  entry.prepare.Write(stats->mutable_compute_input());
  entry.compute.Write(stats->mutable_compute_infer());
  Duration{entry.success.count, 0}.Write(stats->mutable_compute_output());

  double executions = 0;
  for (const auto& [size, items] : entry.by_batch_size) {
    // Every item of a batch left one sample with the whole batch's time.
    const double batches = static_cast<double>(items.count) / size;
    executions += batches;
    auto* batch = out.add_batch_stats();
    batch->set_batch_size(size);
    const auto count = static_cast<uint64_t>(std::ceil(batches));
    Duration{count, items.seconds / size}.Write(batch->mutable_compute_infer());
    Duration{count, 0}.Write(batch->mutable_compute_input());
    Duration{count, 0}.Write(batch->mutable_compute_output());
  }
  out.set_execution_count(static_cast<uint64_t>(std::ceil(executions - 1e-9)));
  return out;
}

}  // namespace longview::server
