#include "server/engine/executor.h"

#include <algorithm>
#include <utility>

#include "models/pauses.h"
#include "server/engine/refusals.h"
#include "server/errors.h"
#include "server/exception_guard.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"
#include "server/scheduler/without_lock.h"

namespace longview::server {
namespace {

double SecondsSince(absl::Time start) { return absl::ToDoubleSeconds(SteadyNow() - start); }

// Shortest stretch of a batch between pauses: nobody needs the device sooner, and work that goes
// between finds the caches full of something else.
constexpr absl::Duration kLeastSlice = absl::Milliseconds(5);

// Guess of what one task takes, for the scheduler; a moment of a model's warm-up takes about that.
constexpr double kExclusiveSeconds = 0.25;

}  // namespace

Executor::Executor(DeviceQueue& queue, LaneDevice device, OnStart on_start, OnFinish on_finish,
                   StepRunner::OnStepped on_stepped, OnLost on_lost)
    : queue_(queue),
      device_(std::move(device)),
      on_start_(std::move(on_start)),
      on_finish_(std::move(on_finish)),
      on_lost_(std::move(on_lost)),
      steps_(
          queue, device_, [this](const Batch& turn) { return on_start_(turn); },
          std::move(on_stepped)),
      thread_(StartThread([this] { Loop(); })) {}

Executor::~Executor() { Stop(); }

void Executor::Stop() {
  queue_.Stop();
  if (thread_.joinable()) thread_.join();
}

void Executor::Loop() {
  while (!queue_.stopped()) {
    if (const std::optional<Batch> turn = queue_.NextBatch(device_.lane())) {
      if (turn->kind == TurnKind::kBatch) {
        RunBatch(*turn);
      } else {
        steps_.Run(*turn);
      }
    }
    RunPosted();
    RunNextExclusive();
    LoseDevice();
  }
  steps_.EndAll(ShuttingDownError());
  RunPosted();
  absl::MutexLock lock(&mutex_);
  // Posted tasks may post more; `ended_` is set under the lock that saw none, so that none is lost.
  while (!posted_.empty()) WithoutLock(&mutex_, [this] { RunPosted(); });
  ended_ = true;
  for (Exclusive* exclusive : exclusives_) exclusive->result = ShuttingDownError();
  exclusives_.clear();
}

void Executor::LoseDevice() {
  if (!device_.lost() || std::exchange(given_up_, true)) return;
  queue_.Lose(device_.lane());
  steps_.EndAll(DeviceLostError(device_.name()));
  on_lost_(device_);
}

absl::Status Executor::RunExclusive(std::string_view model,
                                    absl::AnyInvocable<absl::Status()> task) {
  Exclusive exclusive{std::string(model), std::move(task), std::nullopt};
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return ShuttingDownError();
    exclusives_.push_back(&exclusive);
  }
  queue_.Wake(device_.lane());
  absl::MutexLock lock(&mutex_);
  const auto over = [&exclusive] { return exclusive.result.has_value(); };
  mutex_.Await(absl::Condition(&over));
  return *exclusive.result;
}

void Executor::Post(Task task) {
  {
    absl::MutexLock lock(&mutex_);
    if (!ended_) {
      posted_.push_back(std::move(task));
      task = nullptr;
    }
  }
  if (task != nullptr) return task();
  queue_.Wake(device_.lane());
}

void Executor::RunPosted() {
  std::vector<Task> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks.swap(posted_);
  }
  for (Task& task : tasks) task();
}

// Cuts what one batch or task computes into slices and lets others through between them.
class Executor::Slices final : public models::Pauses {
 public:
  // Adds the seconds of others to `of_others`.
  Slices(Executor& executor, double& of_others)
      : executor_(executor), of_others_(of_others), start_(SteadyNow()) {}

  void Pause() override {
    if (SteadyNow() - start_ >= kLeastSlice) End();
  }
  // The slice is over, however short.
  void End() {
    const absl::Time end = SteadyNow();
    executor_.device_.watch().Beat();
    executor_.LetOthersThrough(absl::ToDoubleSeconds(end - start_));
    start_ = SteadyNow();
    of_others_ += absl::ToDoubleSeconds(start_ - end);
  }

 private:
  Executor& executor_;
  double& of_others_;
  absl::Time start_;
};

void Executor::RunNextExclusive() {
  Exclusive* exclusive;
  {
    absl::MutexLock lock(&mutex_);
    if (exclusives_.empty() || queue_.stopped()) return;
    exclusive = exclusives_.front();
  }
  absl::Status status;
  {
    const TurnWatch::Scope watched(device_.watch(), exclusive->model, 0);
    double of_others = 0;
    Slices slices(*this, of_others);
    queue_.BeginTask(kExclusiveSeconds, device_.lane());
    const models::PauseScope scope(&slices);
    status = Guarded([&] { return exclusive->task(); });
    queue_.Finish(device_.lane());
  }
  device_.Note(status);
  bool more;
  {
    absl::MutexLock lock(&mutex_);
    exclusives_.pop_front();
    exclusive->result = std::move(status);
    more = !exclusives_.empty();
  }
  // Without it NextBatch could block although a task waits.
  if (more) queue_.Wake(device_.lane());
}

void Executor::LetOthersThrough(double slice_seconds) {
  RunPosted();
  while (!queue_.stopped() && !device_.lost()) {
    const std::optional<Batch> turn = queue_.Interrupt(slice_seconds, device_.lane());
    if (!turn) break;
    if (turn->kind == TurnKind::kBatch) {
      RunBatch(*turn);
    } else {
      steps_.Run(*turn);
    }
  }
}

bool Executor::RunLayers(models::Run& run, BatchResult& result, std::vector<bool>& wanted) {
  Slices slices(*this, result.interrupted_seconds);
  for (bool more = true; more;) {
    const DeviceQueue::Drops drops = queue_.TakeDrops(device_.lane());
    for (const TicketId id : drops.tickets) {
      const auto call = std::find_if(result.calls.begin(), result.calls.end(),
                                     [id](const EngineCall* c) { return c->id == id; });
      const auto i = call - result.calls.begin();
      run.Drop(static_cast<int>(i));
      wanted[i] = false;
      ++result.dropped;
    }
    if (!drops.wanted || queue_.stopped() || device_.lost()) return false;
    {
      const models::PauseScope scope(&slices);
      more = run.Advance();
    }
    device_.watch().Beat();
    if (more) slices.End();
  }
  return true;
}

void Executor::RunBatch(const Batch& batch) {
  BatchResult result;
  result.predicted_seconds = batch.seconds;
  result.calls = on_start_(batch);
  result.answers.resize(result.calls.size());
  result.started = SteadyNow();

  std::vector<const models::Item*> items;
  for (const EngineCall* call : result.calls) items.push_back(call->item.get());
  const ServedModel& served = *result.calls.front()->model;
  const models::Model& model = served.On(device_.name());
  const TurnWatch::Scope scope(device_.watch(), served.name, batch.seconds);
  std::vector<bool> wanted(items.size(), true);
  const absl::Status status = Guarded([&] {
    const std::unique_ptr<models::Run> run = model.Begin(items);
    const bool completed = RunLayers(*run, result, wanted);
    result.forward_seconds = SecondsSince(result.started) - result.interrupted_seconds;
    const absl::Time taking = SteadyNow();
    for (size_t i = 0; completed && i < items.size(); ++i) {
      if (!wanted[i]) continue;
      absl::StatusOr<models::Answer> answer = run->Take(static_cast<int>(i));
      if (!answer.ok()) answer = device_.CheckLost(answer.status());
      if (const auto where = answer.ok() ? answer->NotFinite() : ""; !where.empty()) {
        answer = NotFiniteError(served.name, where, model.info().dtype);
      }
      result.answers[i] = std::move(answer);
    }
    result.take_seconds = SecondsSince(taking);
    return absl::OkStatus();
  });
  const absl::Status thrown = status.ok() ? status : device_.CheckLost(status);
  result.lost = device_.lost();
  for (size_t i = 0; i < items.size(); ++i) {
    if (!wanted[i]) continue;
    if (!thrown.ok()) result.answers[i] = thrown;
    if (result.lost && !result.answers[i]) result.answers[i] = DeviceLostError(device_.name());
  }
  queue_.Finish(device_.lane());
  on_finish_(std::move(result));
}

}  // namespace longview::server
