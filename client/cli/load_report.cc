#include "client/cli/load_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace longview::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<int, 7> kPercentages = {10, 25, 50, 75, 90, 95, 99};
constexpr int kBuckets = 10;

// The names of grpc-go, which ghz prints.
std::string GoName(grpc::StatusCode code) {
  static constexpr std::array<const char*, 17> kNames = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  const size_t index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "Unknown";
}

int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

std::vector<double> SortedLatencies(const LoadRun& run) {
  std::vector<double> latencies;
  for (const LoadSample& sample : run.samples) {
    if (sample.code == grpc::StatusCode::OK) latencies.push_back(sample.latency_seconds);
  }
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

// The first pieces, and the gaps, of all answered streams.
struct StreamTimes {
  std::vector<double> first;  // Sorted, as are the gaps.
  std::vector<double> gaps;
};

StreamTimes SortedStreamTimes(const LoadRun& run) {
  StreamTimes times;
  for (const LoadSample& sample : run.samples) {
    if (sample.code != grpc::StatusCode::OK || sample.first_piece_seconds < 0) continue;
    times.first.push_back(sample.first_piece_seconds);
    times.gaps.insert(times.gaps.end(), sample.gap_seconds.begin(), sample.gap_seconds.end());
  }
  std::sort(times.first.begin(), times.first.end());
  std::sort(times.gaps.begin(), times.gaps.end());
  return times;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::map<std::string, int> CountCodes(const LoadRun& run) {
  std::map<std::string, int> counts;
  for (const LoadSample& sample : run.samples) ++counts[GoName(sample.code)];
  return counts;
}

std::map<std::string, int> CountErrors(const LoadRun& run) {
  std::map<std::string, int> counts;
  for (const LoadSample& sample : run.samples) {
    if (sample.code == grpc::StatusCode::OK) continue;
    ++counts[absl::StrFormat("rpc error: code = %s desc = %s", GoName(sample.code), sample.error)];
  }
  return counts;
}

double Rps(const LoadRun& run) {
  return run.total_seconds > 0 ? static_cast<double>(run.samples.size()) / run.total_seconds : 0;
}

// Equal steps from the fastest to the slowest; mark is the upper end, in seconds.
Json Histogram(const std::vector<double>& sorted) {
  Json buckets = Json::array();
  if (sorted.empty()) return buckets;
  const double step = (sorted.back() - sorted.front()) / kBuckets;
  size_t begin = 0;
  for (int i = 0; i <= kBuckets; ++i) {
    const double mark = i == kBuckets ? sorted.back() : sorted.front() + step * i;
    const size_t end = std::upper_bound(sorted.begin(), sorted.end(), mark) - sorted.begin();
    const size_t count = end - begin;
    buckets.push_back({{"mark", mark},
                       {"count", count},
                       {"frequency", static_cast<double>(count) / sorted.size()}});
    begin = end;
  }
  return buckets;
}

Json Distribution(const std::vector<double>& sorted) {
  Json entries = Json::array();
  for (const int percentage : kPercentages) {
    if (sorted.empty()) break;
    entries.push_back(
        {{"percentage", percentage}, {"latency", Nanoseconds(Percentile(sorted, percentage))}});
  }
  return entries;
}

Json PercentilesOf(const std::vector<double>& sorted) {
  return {{"count", sorted.size()},
          {"average", Nanoseconds(Mean(sorted))},
          {"fastest", sorted.empty() ? 0 : Nanoseconds(sorted.front())},
          {"slowest", sorted.empty() ? 0 : Nanoseconds(sorted.back())},
          {"latencyDistribution", Distribution(sorted)},
          {"histogram", Histogram(sorted)}};
}

// "  name ms: average, p50, p99, slowest"; nothing without values.
std::string SummaryText(const char* name, const std::vector<double>& sorted) {
  if (sorted.empty()) return "";
  return absl::StrFormat("  %s ms: average %.2f, p50 %.2f, p99 %.2f, slowest %.2f\n", name,
                         Mean(sorted) * 1e3, Percentile(sorted, 50) * 1e3,
                         Percentile(sorted, 99) * 1e3, sorted.back() * 1e3);
}

}  // namespace

double Percentile(const std::vector<double>& sorted, double percent) {
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(sorted.size()));
  const size_t index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

std::string LoadReportJson(const LoadRun& run) {
  const std::vector<double> latencies = SortedLatencies(run);
  Json json;
  json["date"] = run.date;
  json["endReason"] = "timeout";
  json["options"] = {{"call", run.call},
                     {"host", run.host},
                     {"load-schedule", "poisson"},
                     {"rps", run.rate},
                     {"duration", Nanoseconds(run.duration)},
                     {"async", true}};
  json["count"] = run.samples.size();
  json["total"] = Nanoseconds(run.total_seconds);
  json["average"] = Nanoseconds(Mean(latencies));
  json["fastest"] = latencies.empty() ? 0 : Nanoseconds(latencies.front());
  json["slowest"] = latencies.empty() ? 0 : Nanoseconds(latencies.back());
  json["rps"] = Rps(run);
  json["errorDistribution"] = CountErrors(run);
  json["statusCodeDistribution"] = CountCodes(run);
  json["latencyDistribution"] = Distribution(latencies);
  json["histogram"] = Histogram(latencies);
  if (const StreamTimes times = SortedStreamTimes(run); !times.first.empty()) {
    json["timeToFirstToken"] = PercentilesOf(times.first);
    json["tokenGap"] = PercentilesOf(times.gaps);
  }
  return json.dump();
}

std::string LoadReportText(const LoadRun& run) {
  const std::vector<double> latencies = SortedLatencies(run);
  std::string text = absl::StrFormat(
      "%s at %s\n  %d requests in %.2f s, %.2f a second (planned %.2f, Poisson)\n", run.call,
      run.host, run.samples.size(), run.total_seconds, Rps(run), run.rate);
  if (!latencies.empty()) {
    text += absl::StrFormat("  latency ms: average %.2f, fastest %.2f, slowest %.2f\n",
                            Mean(latencies) * 1e3, latencies.front() * 1e3, latencies.back() * 1e3);
    for (const int percentage : kPercentages) {
      text += absl::StrFormat("  p%-3d %10.2f ms\n", percentage,
                              Percentile(latencies, percentage) * 1e3);
    }
  }
  const StreamTimes times = SortedStreamTimes(run);
  text += SummaryText("first token", times.first) + SummaryText("token gap", times.gaps);
  for (const auto& [name, count] : CountCodes(run))
    text += absl::StrFormat("  %s: %d\n", name, count);
  for (const auto& [error, count] : CountErrors(run)) {
    text += absl::StrFormat("  %d x %s\n", count, error);
  }
  return text;
}

}  // namespace longview::client
