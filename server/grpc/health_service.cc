#include "server/grpc/health_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/grpc/unary_call.h"

namespace longview::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// How late a watcher may learn of a change.
constexpr std::chrono::milliseconds kInterval{25};

}  // namespace

// One Watch call. Owns itself from Watch to OnDone.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService& service, std::string name) : service_(service), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // Writes `status` unless the client has it already.
  void Show(ServingStatus status) {
    std::lock_guard lock(mutex_);
    if (writing_ || finished_ || shown_ == status) return;
    shown_ = status;
    response_.set_status(status);
    writing_ = true;
    StartWrite(&response_);
  }

  void End(const grpc::Status& status) {
    std::lock_guard lock(mutex_);
    if (!end_) end_ = status;
    FinishIfDue();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok && !end_) end_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client left");
    FinishIfDue();
  }
  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "the client left")); }
  void OnDone() override {
    service_.Remove(this);
    delete this;
  }

 private:
  void FinishIfDue() {
    if (!end_ || writing_ || finished_) return;
    finished_ = true;
    Finish(*end_);
  }

  HealthService& service_;
  const std::string name_;

  std::mutex mutex_;  // Guards all below.
  HealthCheckResponse response_;
  std::optional<ServingStatus> shown_;
  std::optional<grpc::Status> end_;
  bool writing_ = false;
  bool finished_ = false;
};

HealthService::HealthService(Api& api, std::vector<std::string> services)
    : api_(api), services_(std::move(services)), thread_([this] { Compare(); }) {}

HealthService::~HealthService() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<HealthService::ServingStatus> HealthService::StatusOf(const std::string& name) const {
  bool serving = false;
  if (name.empty() || name == "readiness" ||
      std::find(services_.begin(), services_.end(), name) != services_.end()) {
    serving = api_.ServerReady();
  } else if (name == "liveness") {
    serving = api_.ServerLive();
  } else {
    const absl::StatusOr<bool> ready = api_.ModelReady(name, "");
    if (!ready.ok()) return std::nullopt;
    serving = *ready;
  }
  return serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  absl::StatusOr<HealthCheckResponse> result = HealthCheckResponse();
  if (const auto status = StatusOf(request->service())) {
    result->set_status(*status);
  } else {
    result = MakeError(absl::StatusCode::kNotFound,
                       absl::StrCat("service: ", Quoted(request->service()),
                                    " is neither a model nor a service of this server"),
                       {.reason = "SERVICE_UNKNOWN", .param = "service"});
  }
  return AnswerNow(*context, response, std::move(result));
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const HealthCheckRequest* request) {
  auto* watcher = new Watcher(*this, request->service());
  std::lock_guard lock(mutex_);
  if (ended_) {
    watcher->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"));
    return watcher;
  }
  watcher->Show(StatusOf(watcher->name()).value_or(HealthCheckResponse::SERVICE_UNKNOWN));
  watchers_.insert(watcher);
  changed_.notify_all();
  return watcher;
}

void HealthService::Compare() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (watchers_.empty()) {
      changed_.wait(lock);
      continue;
    }
    for (Watcher* watcher : watchers_) {
      watcher->Show(StatusOf(watcher->name()).value_or(HealthCheckResponse::SERVICE_UNKNOWN));
    }
    changed_.wait_for(lock, kInterval, [this] { return stop_; });
  }
}

void HealthService::EndWatches() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  for (Watcher* watcher : watchers_) {
    watcher->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"));
  }
}

void HealthService::Remove(Watcher* watcher) {
  std::lock_guard lock(mutex_);
  watchers_.erase(watcher);
}

}  // namespace longview::server
