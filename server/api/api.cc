#include "server/api/api.h"

#include <utility>

#include "server/tracing/tracer.h"

namespace longview::server {

Api::Api(ModelStore& store, Engine& engine, Documents& documents, Lifecycle& lifecycle,
         Metrics& metrics, Log& log, ApiOptions options)
    : context_{store,   engine, documents,         lifecycle, {store, metrics, log},
               metrics, {},     std::move(options)} {}

void Api::Trace(CallInfo& info) const {
  Tracer* const tracer = context_.options.tracer;
  if (tracer != nullptr) tracer->Trace(info);
}

absl::Status Api::Record(const CallInfo& info, std::string_view model, std::string_view,
                         const absl::Status& status) {
  const CallRecorder& recorder = context_.recorder;
  return recorder.Done(info, recorder.Labels(model), status, {});
}

void Api::Cancel(const Pending& call) {
  if (call != nullptr) call->Cancel();
}

Api::StateSubscription Api::SubscribeToStates(std::function<void()> changed) {
  return {context_.lifecycle.changes().Subscribe(changed), store().changes().Subscribe(changed)};
}

std::string Api::NotLive() const { return context_.engine.Stuck(); }

bool Api::ServerReady() const {
  return context_.lifecycle.ready() && store().StartupComplete() && context_.engine.Able();
}

}  // namespace longview::server
