#include "server/api/calls/call_recorder.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/scheduler/steady_clock.h"
#include "server/security/client_quota.h"
#include "server/tracing/call_spans.h"

namespace longview::server {
namespace {

bool IsOurFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

// Cuts a caller's request id to the length that logs carry.
std::string_view Logged(std::string_view request_id) { return request_id.substr(0, 64); }

// The name of a field of a line; empty, which leaves it out, if there is nothing to say.
std::string_view NameUnlessEmpty(std::string_view name, std::string_view value) {
  return value.empty() ? std::string_view() : name;
}

void EndTrace(const CallInfo& info, const ModelLabels& model, absl::StatusCode code,
              const CallRecorder::Counts& counts) {
  info.spans->Finish(SteadyNow(), [&](CallTrace& trace) {
    trace.request_id = Logged(info.request_id);
    trace.api = info.api;
    trace.method = info.method;
    trace.model = model.model;
    trace.version = model.version;
    trace.code = code;
    trace.items = counts.items;
    trace.tokens = counts.tokens;
    trace.pixels = counts.pixels;
  });
}

}  // namespace

absl::Status CallRecorder::Done(const CallInfo& info, const ModelLabels& model,
                                const absl::Status& status, const Counts& counts) const {
  const double seconds = absl::ToDoubleSeconds(SteadyNow() - info.arrival);
  const std::string code = absl::StatusCodeToString(status.code());
  std::string reason = status.ok() ? "" : GetErrorDetail(status).reason;
  if (reason == code) reason.clear();
  metrics_.RequestDone(model, info.api, info.method, status.code(), seconds);
  if (status.code() == absl::StatusCode::kUnauthenticated) {
    metrics_.Rejected({}, RejectReason::kAuth);
  }
  if (info.spans != nullptr) EndTrace(info, model, status.code(), counts);
  if (status.code() == absl::StatusCode::kResourceExhausted &&
      GetErrorDetail(status).reason.starts_with("CLIENT_")) {
    metrics_.Rejected({}, RejectReason::kQuota);
  }
  if (info.permit != nullptr) info.permit->Release();
  log_.Info("request", {{"request_id", Logged(info.request_id)},
                        {NameUnlessEmpty("trace_id", info.trace.trace_id), info.trace.trace_id},
                        {NameUnlessEmpty("parent_id", info.trace.parent_id), info.trace.parent_id},
                        {"api", info.api},
                        {"method", info.method},
                        {"client", info.caller()},
                        {"model", model.model},
                        {"code", code},
                        {NameUnlessEmpty("reason", reason), reason},
                        {"seconds", seconds},
                        {"items", int64_t{counts.items}},
                        {counts.pixels > 0 ? "pixels" : "tokens",
                         counts.pixels > 0 ? counts.pixels : counts.tokens}});
  return Shown(info, status);
}

absl::Status CallRecorder::Shown(const CallInfo& info, const absl::Status& status) const {
  if (!IsOurFault(status.code())) return status;
  const std::string message(status.message());
  log_.Error(
      "internal error",
      {{"request_id", Logged(info.request_id)}, {"method", info.method}, {"error", message}});
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat("internal error; request id ", info.request_id),
                   {.reason = "INTERNAL"});
}

void CallRecorder::ModelControl(const CallInfo& info, std::string_view action,
                                std::string_view model, const absl::Status& outcome) const {
  // A name that the server does not know may be anything, and stays out of the log.
  const std::string name = absl::IsNotFound(outcome) ? "" : Excerpt(model);
  const std::string code = absl::StatusCodeToString(outcome.code());
  log_.Info("model control", {{"action", action},
                              {"model", name},
                              {"client", info.caller()},
                              {"address", info.address},
                              {"code", code},
                              {"seconds", absl::ToDoubleSeconds(SteadyNow() - info.arrival)},
                              {"api", info.api},
                              {"request_id", Logged(info.request_id)}});
}

ModelLabels CallRecorder::Labels(std::string_view name) const {
  if (name.empty()) return {};
  if (const absl::StatusOr<ModelHandle> loaded = store_.Find(name, ""); loaded.ok()) {
    return {(*loaded)->name, (*loaded)->version};
  }
  const std::string served = store_.NameOf(name);
  for (const ModelStatus& status : store_.List()) {
    if (status.name == served) return {status.name, status.version};
  }
  return {};
}

}  // namespace longview::server
