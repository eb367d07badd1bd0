#include "server/grpc/health_service.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/scheduler/thread_loop.h"
#include "server/status_map_grpc.h"

namespace longview::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

// How late a watcher may learn of what nobody tells the server.
constexpr absl::Duration kInterval = absl::Seconds(1);

}  // namespace

// One Watch call.
class HealthService::Watcher final : public ByteCall {
 public:
  Watcher(HealthService& service, const CallTools& tools, grpc::CallbackServerContext& context)
      : ByteCall(tools, context, "Watch", Access::kAnybody), service_(service) {}

  const std::string& name() const { return name_; }

  // Writes `status` unless the client has it already, or once the write under way is over.
  void Show(ServingStatus status) {
    absl::MutexLock lock(&mutex_);
    status_ = status;
    Step();
  }

  void End(const grpc::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (!end_) end_ = status;
    Step();
  }

  void OnWriteDone(bool ok) override {
    open().Taken();
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok && !end_) end_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client left");
    Step();
  }
  void EndNow(const grpc::Status& status) override { End(status); }
  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "the client left")); }

 private:
  void Begin() override { Read(Pace::kInTime); }

  void OnNoMessage() override { End({grpc::StatusCode::INTERNAL, "the call has no message"}); }

  void OnMessage(grpc::ByteBuffer& bytes) override {
    HealthCheckRequest request;
    if (const grpc::Status read = Decode(bytes, request, held()); !read.ok()) return End(read);
    name_ = request.service();
    // A cancellation may end the call meanwhile.
    Hold();
    service_.Add(this);
    Drop();
  }

  void Delete() override {
    service_.Remove(this);
    delete this;
  }

  void Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_ || refused()) return;
    if (end_) {
      finished_ = true;
      return Finish(*end_);
    }
    if (!status_ || shown_ == status_) return;
    shown_ = status_;
    HealthCheckResponse response;
    response.set_status(*status_);
    StartWrite(&Encode(response));
    writing_ = true;
  }

  HealthService& service_;
  std::string name_;

  absl::Mutex mutex_;
  std::optional<ServingStatus> status_ ABSL_GUARDED_BY(mutex_);
  std::optional<ServingStatus> shown_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

HealthService::HealthService(Api& api, std::vector<std::string> services)
    : api_(api), services_(std::move(services)), thread_(StartThread([this] { Compare(); })) {
  subscription_ = api_.SubscribeToStates([this] {
    absl::MutexLock lock(&mutex_);
    news_ = true;
    changed_.SignalAll();
  });
}

HealthService::~HealthService() {
  subscription_ = {};
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  changed_.SignalAll();
  thread_.join();
}

void HealthService::AddMethods(ByteService& service) {
  service.AddImmediate<HealthCheckRequest, HealthCheckResponse>(
      "Check",
      [this](const CallInfo&, const HealthCheckRequest& request) {
        return Check(request.service());
      },
      Access::kAnybody);
  // Names models, which callers without a key are not told.
  service.AddImmediate<HealthListRequest, HealthListResponse>(
      "List", [this](const CallInfo&, const HealthListRequest&) { return List(); });
  service.Add("Watch", [this, &service](grpc::CallbackServerContext& context) -> ByteCall* {
    return new Watcher(*this, service.tools(), context);
  });
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

absl::StatusOr<HealthCheckResponse> HealthService::Check(const std::string& name) const {
  const std::optional<ServingStatus> status = StatusOf(name);
  if (!status) {
    return MakeError(
        absl::StatusCode::kNotFound,
        absl::StrCat("service: ", Quoted(name), " is neither a model nor a service of this server"),
        {.reason = "SERVICE_UNKNOWN", .param = "service"});
  }
  HealthCheckResponse response;
  response.set_status(*status);
  return response;
}

absl::StatusOr<HealthListResponse> HealthService::List() const {
  std::vector<std::string> names = {"", "readiness", "liveness"};
  names.insert(names.end(), services_.begin(), services_.end());
  ASSIGN_OR_RETURN(const auto models, api_.ListModels());
  for (const auto& model : models.models()) names.push_back(model.name());
  HealthListResponse response;
  for (const std::string& name : names) {
    // A model may have gone meanwhile.
    if (const auto status = StatusOf(name))
      (*response.mutable_statuses())[name].set_status(*status);
  }
  return response;
}

void HealthService::Add(Watcher* watcher) {
  absl::MutexLock lock(&mutex_);
  if (ended_) {
    return watcher->End(ToGrpcStatus(ShuttingDownError()));
  }
  watcher->Show(StatusOf(watcher->name()).value_or(HealthCheckResponse::SERVICE_UNKNOWN));
  watchers_.insert(watcher);
  changed_.SignalAll();
}

void HealthService::Compare() {
  const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || news_; };
  absl::MutexLock lock(&mutex_);
  while (!stop_) {
    if (watchers_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    news_ = false;
    for (Watcher* watcher : watchers_) {
      watcher->Show(StatusOf(watcher->name()).value_or(HealthCheckResponse::SERVICE_UNKNOWN));
    }
    changed_.AwaitFor(&mutex_, absl::Condition(&due), kInterval);
  }
}

void HealthService::EndWatches() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  for (Watcher* watcher : watchers_) {
    watcher->End(ToGrpcStatus(ShuttingDownError()));
  }
}

void HealthService::Remove(Watcher* watcher) {
  absl::MutexLock lock(&mutex_);
  watchers_.erase(watcher);
}

}  // namespace longview::server
