// Calls on many texts: what goes in and what comes out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/calls/call_totals.h"
#include "server/metrics/metrics.h"

namespace longview::server {

// The texts as the caller gave them: what is no text is the error that says so.
using TextList = std::vector<absl::StatusOr<std::string>>;

// One typed request for each text. Model and version of the requests themselves count for nothing.
template <typename Request>
struct ListRequest {
  std::string model;
  std::string version;
  std::vector<absl::StatusOr<Request>> items;  // An error stands for a text that is none.
  std::string_view field;                      // The caller's name of the texts; static storage.
  // Whether a text that fails has its error as its result; else it fails the call, with its index.
  bool partial = false;
  int top_k = 0;               // Equal to that of every request.
  bool return_logits = false;  // Equal to that of every request.
};

template <typename Response>
struct ListAnswer {
  ModelLabels model;
  std::vector<absl::StatusOr<Response>> results;  // In order, without model and version.
  CallTotals totals;                              // Sums over the answered ones.
};

}  // namespace longview::server
