// The result of a load test, in ghz's terms.
//
// Thread-safe: pure functions.
#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <vector>

namespace longview::client {

struct LoadSample {
  double latency_seconds;  // From the planned arrival to the answer: waiting to send counts.
  grpc::StatusCode code;
  std::string error;  // Empty if OK.

  // Time to first token of a streamed answer, from the planned arrival. Negative = not streamed.
  double first_piece_seconds = -1;
  std::vector<double> gap_seconds = {};  // Between neighbouring pieces.
};

struct LoadRun {
  std::string call;  // E.g. longview.v1.TextService.Classify.
  std::string host;
  double rate = 0;           // Planned requests per second.
  double duration = 0;       // Planned seconds of arrivals.
  double total_seconds = 0;  // From the start to the last answer.
  std::string date;          // RFC 3339.
  std::vector<LoadSample> samples;
};

// The latency that `percent` of the sorted values do not exceed (nearest rank).
//
// REQUIRES: sorted is not empty, 0 < percent <= 100.
double Percentile(const std::vector<double>& sorted, double percent);

// ghz's JSON report: count, total, average, fastest, slowest, rps, statusCodeDistribution,
// errorDistribution, latencyDistribution, histogram, options, date, endReason; durations in
// nanoseconds. As in ghz, latencies are those of answered calls; failed ones are counted only.
// Streams also have `timeToFirstToken` and `tokenGap`, which ghz does not have: count, average,
// fastest, slowest, latencyDistribution, histogram of the first pieces and of the gaps.
std::string LoadReportJson(const LoadRun& run);

// The report as text for people.
std::string LoadReportText(const LoadRun& run);

}  // namespace longview::client
