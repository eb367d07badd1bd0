// Sends a planned load and measures it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "client/cli/load_plan.h"
#include "client/cli/load_report.h"

namespace longview::client {

// How a call ended, and when the pieces of a streamed answer came.
struct CallEnd {
  CallEnd(grpc::Status s) : status(std::move(s)) {}  // NOLINT: a plain answer is its status.

  grpc::Status status;
  std::vector<std::chrono::steady_clock::time_point> pieces;
};

// Begins one call and returns at once; `done` runs when it ended, on any thread.
using StartCall = std::function<void(int request, std::function<void(CallEnd)> done)>;

// Starts every call at its planned time, whatever became of those before, and waits for all.
//
// Returns a sample per arrival, in plan order; *total_seconds is the time to the last answer.
// Each latency begins at the planned time, so that a late start does not hide a wait.
std::vector<LoadSample> RunLoad(const std::vector<Arrival>& plan, const StartCall& start,
                                double* total_seconds);

}  // namespace longview::client
