// The engine's views of itself: estimates, gauges, liveness.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "models/stop_scope.h"
#include "server/engine/engine.h"
#include "server/engine/engine_device.h"
#include "server/engine/refusals.h"
#include "server/engine/request_bytes.h"
#include "server/errors.h"
#include "server/exception_guard.h"

namespace longview::server {
namespace {

// No more than decides on a turn: an answer is not to depend on how long its caller waits.
CallInfo AskerOf(const CallInfo& info) {
  CallInfo asker;
  asker.client = info.client;
  asker.weight = info.weight;
  return asker;
}

}  // namespace

bool Generates(const models::ModelInfo& info, models::Task task) {
  return info.prefill_alignment > 0 &&
         (task == models::Task::kTextGeneration || task == models::Task::kText2TextGeneration);
}

void Engine::Estimate(ModelHandle model, std::optional<models::Request> request, int tokens,
                      const CallInfo& info, std::shared_ptr<const std::atomic<bool>> unwanted,
                      Reply<Estimated> done) {
  if (!request) {
    replies_.Add([this, model = std::move(model), tokens, asker = AskerOf(info),
                  done = std::move(done)]() mutable {
      const absl::StatusOr<models::Cost> cost = model->model->EstimateTokens(tokens);
      if (!cost.ok()) return done(RefusalOrInternal(cost.status()));
      models::ItemUsage usage;
      usage.input_tokens = tokens;
      done(Judged(model, /*generates=*/false, /*lane=*/-1, asker, *cost, usage));
    });
    return;
  }
  OnPool(*std::move(request), info.client, info.deadline,
         [this, model = std::move(model), asker = AskerOf(info), deadline = info.deadline,
          unwanted = std::move(unwanted),
          done = std::move(done)](absl::StatusOr<models::Request> given) mutable {
           if (!given.ok()) return done(given.status());
           if (clock_.Now() >= deadline) return done(DeadlineError(/*was_running=*/false));
           const models::StopScope scope(unwanted.get());
           if (!models::CheckStop().ok()) return done(CancelledError());
           const int lane = LaneOf(given->document);
           const models::Model& instance = InstanceOf(*model, lane);
           const auto item = Guarded([&] { return instance.Prepare(*given); });
           if (!item.ok()) return done(RefusalOrInternal(item.status()));
           const bool generates = Generates(model->model->info(), given->task);
           done(Judged(model, generates, lane, asker, (*item)->cost(), (*item)->usage()));
         });
}

void Engine::PlanChunks(ModelHandle model, models::Request request, const CallInfo& info,
                        std::shared_ptr<const std::atomic<bool>> unwanted,
                        Reply<models::ChunkPlan> done) {
  OnPool(std::move(request), info.client, info.deadline,
         [this, model = std::move(model), deadline = info.deadline, unwanted = std::move(unwanted),
          done = std::move(done)](absl::StatusOr<models::Request> given) mutable {
           if (!given.ok()) return done(given.status());
           if (clock_.Now() >= deadline) return done(DeadlineError(/*was_running=*/false));
           const models::StopScope scope(unwanted.get());
           auto plan = Guarded([&] { return model->model->PlanChunks(*given); });
           if (!plan.ok()) return done(RefusalOrInternal(plan.status()));
           done(*std::move(plan));
         });
}

void Engine::OnPool(models::Request request, const std::string& client, absl::Time deadline,
                    PoolJob job) {
  const size_t bytes = RequestBytes(request);
  const size_t scratch = PrepareScratch(request);
  // Shared with the pool so that it can still be answered if there is no room.
  auto shared = std::make_shared<PoolJob>(std::move(job));
  uint64_t id;
  {
    absl::MutexLock lock(&mutex_);
    id = ++last_id_;
  }
  const bool added =
      pool_.Add({.id = id,
                 .client = client,
                 .deadline = deadline,
                 .bytes = bytes,
                 .scratch = scratch,
                 .run = [shared, request = std::move(request)](PreprocessPool::Turn turn) mutable {
                   if (turn == PreprocessPool::Turn::kStopped)
                     return (*shared)(ShuttingDownError());
                   (*shared)(std::move(request));
                 }});
  if (added) return;
  replies_.Add([shared, bytes, limit = pool_.limits().client_bytes] {
    (*shared)(PoolFullError(bytes, limit));
  });
}

Estimated Engine::Judged(const ModelHandle& model, bool generates, int lane, const CallInfo& asker,
                         const models::Cost& cost, const models::ItemUsage& usage) {
  models::Cost paced;
  {
    absl::MutexLock lock(&mutex_);
    paced = UseOf(model).Paced(cost, generates, clock_.Now());
  }
  const Ticket ticket = TicketOf(0, *model, generates, asker, paced, lane);
  const Admission admission = DevicesOf(*model).queue.Judge(ticket);
  Estimated estimated;
  estimated.cost = cost;
  estimated.cost.seconds = ticket.seconds;  // At the pace of late, as it would be admitted.
  estimated.usage = usage;
  estimated.queue_seconds = admission.wait_seconds;
  estimated.fits = admission.verdict == Verdict::kAdmitted;
  if (!estimated.fits) estimated.reason = std::string(RefusalError(admission).message());
  return estimated;
}

double Engine::QueuedSeconds() const {
  double seconds = 0;
  for (const auto& devices : devices_) seconds += devices->queue.WorkSeconds();
  return seconds;
}

std::string Engine::Stuck() const {
  if (!Able()) return "the devices of some models were lost";
  if (pool_.Stalled() > options_.stall_patience) return "requests wait to be prepared";
  for (const auto& devices : devices_) {
    bool busy = false;
    for (const auto& lane : devices->lanes) {
      const TurnWatch& watch = lane->executor.watch();
      busy = busy || watch.busy();
      const auto late = watch.Overdue(options_.watch_factor, options_.watch_floor);
      if (!late) continue;
      return absl::StrFormat(
          "model %s on %s: nothing came back for %.0f s of work predicted to take "
          "%.3g s",
          late->what, lane->name, absl::ToDoubleSeconds(late->since), late->predicted_seconds);
    }
    // A busy thread is watched elsewhere, and nobody else can have its device meanwhile.
    if (!busy && devices->queue.Stalled() > options_.stall_patience) {
      return absl::StrFormat("work waits for %s, which is idle", devices->lanes.front()->name);
    }
  }
  return "";
}

bool Engine::Able() const {
  return std::none_of(devices_.begin(), devices_.end(),
                      [](const auto& devices) { return devices->lost(); });
}

std::vector<std::string> Engine::DevicesLike(std::string_view device) const {
  std::vector<std::string> names;
  const Devices& devices = DevicesWith(device);
  for (const auto& lane : devices.lanes) {
    if (!devices.queue.lost(lane->number)) names.push_back(lane->name);
  }
  return names;
}

void Engine::Lose(const LaneDevice& device) {
  metrics_.DeviceUp(device.name(), false);
  if (options_.on_lost != nullptr) options_.on_lost(device.name(), device.why());
}

absl::Status Engine::RunOnDevice(std::string_view device, std::string_view model,
                                 absl::AnyInvocable<absl::Status()> task) {
  return LaneNamed(device).executor.RunExclusive(model, std::move(task));
}

SchedulerGauges Engine::GaugesOf(const ModelLabels& labels) const {
  SchedulerGauges sum;
  sum.inter_token_ceiling_seconds = options_.scheduler.inter_token_seconds;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, use] : models_) {
    if (use->labels.model != labels.model || use->labels.version != labels.version) continue;
    sum.inter_token_ceiling_seconds =
        std::max(sum.inter_token_ceiling_seconds, use->devices->queue.InterTokenCeiling());
    for (const ModelId part : {id, id | kStepsOf}) {
      const QueueGauges gauges = use->devices->queue.GaugesOf(part);
      sum.queued_requests += static_cast<double>(gauges.queued_requests);
      sum.running_requests += static_cast<double>(gauges.running_requests);
      sum.queued_work_seconds += gauges.queued_seconds;
    }
  }
  return sum;
}

}  // namespace longview::server
