// Sends a planned load and measures it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <vector>

#include "client/cli/load_plan.h"
#include "client/cli/load_report.h"

namespace longview::client {

// Begins one call and returns at once; `done` runs when it ended, on any thread.
using StartCall = std::function<void(int request, std::function<void(grpc::Status)> done)>;

// Starts every call at its planned time, whatever became of those before, and waits for all.
//
// Returns a sample per arrival, in plan order; *total_seconds is the time to the last answer.
// Each latency begins at the planned time, so that a late start does not hide a wait.
std::vector<LoadSample> RunLoad(const std::vector<Arrival>& plan, const StartCall& start,
                                double* total_seconds);

}  // namespace longview::client
