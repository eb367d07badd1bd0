// The end of every call: one metric sample, one log line, and its trace if it has one.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "server/call.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/served/model_store.h"

namespace longview::server {

// Thread-safe. Borrows its collaborators.
class CallRecorder {
 public:
  CallRecorder(const ModelStore& store, Metrics& metrics, Log& log)
      : store_(store), metrics_(metrics), log_(log) {}

  struct Counts {
    int items = 0;
    int64_t tokens = 0;
    int64_t pixels = 0;  // Counted for pictures instead of tokens.
  };

  // Returns what the client is told: `status`, but of INTERNAL errors only the request id;
  // their message goes to the log.
  absl::Status Done(const CallInfo& info, const ModelLabels& model, const absl::Status& status,
                    const Counts& counts) const;

  // The error as the client is told it, for a part of a call; Done does the same for all of it.
  absl::Status Shown(const CallInfo& info, const absl::Status& status) const;

  // The audit line of a load or unload that is over: who, what, and how it ended. `action`: "load"
  // or "unload"; `model` as the client wrote it.
  void ModelControl(const CallInfo& info, std::string_view action, std::string_view model,
                    const absl::Status& outcome) const;

  // The labels of a name as a client wrote it: empty unless the store knows it, so that
  // clients cannot create series.
  ModelLabels Labels(std::string_view name) const;

 private:
  const ModelStore& store_;
  Metrics& metrics_;
  Log& log_;
};

}  // namespace longview::server
