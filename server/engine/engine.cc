#include "server/engine/engine.h"

#include <algorithm>
#include <utility>

#include "server/engine/engine_device.h"
#include "server/engine/refusals.h"
#include "server/errors.h"
#include "server/exception_guard.h"
#include "server/tracing/call_spans.h"

namespace longview::server {
namespace {

// Largest answers that the device's thread delivers itself; larger ones would hold up the device.
constexpr size_t kInlineAnswerBytes = 64 << 10;

size_t AnswerBytes(const absl::StatusOr<Completed>& answer) {
  size_t bytes = 0;
  if (!answer.ok()) return bytes;
  for (const models::HostTensor& tensor : answer->answer.tensors) bytes += tensor.data.size();
  return bytes;
}

// "cuda" of "cuda:1".
std::string_view KindOf(std::string_view device) { return device.substr(0, device.find(':')); }

absl::Status DepartedError(const Departure& departure, const EngineCall& call) {
  if (departure.lost) return DevicesLostError();
  return departure.memory ? MemoryHeldError() : LateError(call, departure.was_running);
}

// Seconds that the model itself predicted for the batch, not corrected by the pace.
double PredictedSeconds(const BatchResult& result) {
  double seconds = 0;
  for (const EngineCall* call : result.calls) seconds += call->item->cost().seconds;
  return seconds;
}

// Tokens computed so far for a running call.
int64_t SpentTokens(const EngineCall& call) {
  return call.generates ? call.read_tokens + call.sampled_tokens : call.item->usage().input_tokens;
}

}  // namespace

Engine::Engine(const EngineOptions& options, const Lifecycle& lifecycle, Metrics& metrics)
    : options_(options),
      lifecycle_(lifecycle),
      metrics_(metrics),
      pool_(options.prepare_threads, options.prepare) {
  std::vector<std::vector<std::string>> kinds;
  for (const std::string& name : options.devices) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& names) {
      return KindOf(names.front()) == KindOf(name);
    });
    (kind == kinds.end() ? kinds.emplace_back() : *kind).push_back(name);
  }
  for (const auto& names : kinds) devices_.push_back(std::make_unique<Devices>(*this, names));
  for (const std::string& name : options.devices) metrics_.DeviceUp(name, true);
  metrics_.SetSchedulerGauges([this](const ModelLabels& labels) { return GaugesOf(labels); });
}

Engine::~Engine() {
  // A scrape that comes now must not find an engine that is being destroyed.
  metrics_.SetSchedulerGauges({});
  Shutdown();
}

Engine::Devices& Engine::DevicesWith(std::string_view name) const {
  for (const auto& devices : devices_) {
    for (const auto& lane : devices->lanes) {
      if (lane->name == name) return *devices;
    }
  }
  return *devices_.front();
}

Engine::Devices& Engine::DevicesOf(const ServedModel& model) const {
  return DevicesWith(model.model->info().device);
}

Engine::Lane& Engine::LaneNamed(std::string_view name) const {
  const Devices& devices = DevicesWith(name);
  for (const auto& lane : devices.lanes) {
    if (lane->name == name) return *lane;
  }
  return *devices.lanes.front();
}

models::Model& Engine::InstanceOf(const ServedModel& model, int lane) const {
  if (lane < 0) return *model.model;
  return model.On(DevicesOf(model).lanes[static_cast<size_t>(lane)]->name);
}

EngineCall* Engine::Find(CallId id) {
  const auto it = calls_.find(id);
  return it == calls_.end() ? nullptr : it->second.get();
}

Engine::CallPtr Engine::Free(CallId id) {
  const auto it = calls_.find(id);
  if (it == calls_.end()) return nullptr;
  CallPtr call = std::move(it->second);
  calls_.erase(it);
  if (calls_.empty()) idle_.SignalAll();
  return call;
}

Engine::Ending Engine::TakeEnding(EngineCall& call) {
  call.unwanted.store(true, std::memory_order_relaxed);
  return {std::exchange(call.done, nullptr), std::move(call.events)};
}

void Engine::EndLater(Ending ending, absl::StatusOr<Completed> result) {
  replies_.Add([ending = std::move(ending), result = std::move(result)]() mutable {
    Deliver(ending.done, std::move(result));
  });
}

void Engine::End(Ending ending, absl::StatusOr<Completed> result) {
  if (ending.events != nullptr) return EndLater(std::move(ending), std::move(result));
  Deliver(ending.done, std::move(result));
}

Engine::ModelUse& Engine::UseOf(const ModelHandle& model) {
  const auto known = models_.find(model->id);
  if (known != models_.end()) return *known->second;
  std::erase_if(models_, [](const auto& use) { return use.second->model.expired(); });
  auto use = std::make_unique<ModelUse>(ModelUse{model, LabelsOf(*model), &DevicesOf(*model)});
  return *models_.emplace(model->id, std::move(use)).first->second;
}

models::Cost Engine::ModelUse::Paced(models::Cost cost, bool generates, absl::Time now) const {
  if (!generates) {
    cost.seconds *= batched.PaceOf(cost.seconds, now);
    return cost;
  }
  const double prompt = cost.prompt_seconds * steps.OfReading(now);
  cost.seconds = prompt + (cost.seconds - cost.prompt_seconds) * steps.OfSampling(now);
  cost.prompt_seconds = prompt;
  return cost;
}

void Engine::SetPace(EngineCall& call) {
  const absl::Time now = clock_.Now();
  const StepPace& steps = UseOf(call.model).steps;
  call.pace = steps.OfSampling(now);
  call.read_pace = steps.OfReading(now);
}

std::vector<EngineCall*> Engine::Start(const Batch& batch) {
  std::vector<EngineCall*> calls;
  absl::MutexLock lock(&mutex_);
  for (const TicketId id : batch.tickets) {
    EngineCall* call = Find(id);
    call->stage = CallStage::kRunning;
    if (CallSpans* const spans = call->info.spans.get()) {
      const absl::Time now = clock_.Now();
      spans->End(CallPart::kQueue, now);
      spans->Begin(CallPart::kCompute, now);
    }
    if (call->generates) SetPace(*call);
    calls.push_back(call);
  }
  return calls;
}

void Engine::RecordBatch(const BatchResult& result) {
  const ModelLabels labels = LabelsOf(*result.calls.front()->model);
  int64_t tokens = 0;
  for (const EngineCall* call : result.calls) {
    const double waited = absl::ToDoubleSeconds(result.started - call->submitted);
    metrics_.Queued(labels, std::max(0.0, waited - call->prepare_seconds));
    tokens += call->item->usage().input_tokens;
  }
  metrics_.Computed(labels, Phase::kForward, result.forward_seconds);
  metrics_.Computed(labels, Phase::kPostprocess, result.take_seconds);
  metrics_.Tokens(labels, "prompt", tokens);
  // A batch that lost items says nothing about the prediction.
  if (result.dropped > 0 || result.lost) return;
  metrics_.Batch(labels, static_cast<int>(result.calls.size()), tokens, result.predicted_seconds,
                 result.forward_seconds + result.take_seconds);
}

void Engine::Finish(BatchResult result, bool more) {
  RecordBatch(result);
  const ModelLabels labels = LabelsOf(*result.calls.front()->model);
  const absl::Time now = clock_.Now();
  std::vector<CallPtr> freed;
  {
    absl::MutexLock lock(&mutex_);
    // A batch that lost items says nothing about the prediction.
    if (result.dropped == 0 && !result.lost) {
      const double seconds = result.forward_seconds + result.take_seconds;
      UseOf(result.calls.front()->model)
          .batched.Computed(PredictedSeconds(result), result.calls.size(), seconds, now);
    }
    for (const EngineCall* call : result.calls) freed.push_back(Free(call->id));
  }
  std::vector<std::pair<Reply<Completed>, absl::StatusOr<Completed>>> answers;
  for (size_t i = 0; i < freed.size(); ++i) {
    EngineCall& call = *freed[i];
    if (call.info.spans != nullptr) call.info.spans->End(CallPart::kCompute, now);
    if (call.done == nullptr) continue;
    // Not done and not answered: dropped for its deadline by a thread that has not come to answer
    // it, or the executor was stopped.
    const bool late = !result.answers[i] && call.info.deadline <= now;
    if (!result.answers[i]) {
      result.answers[i] = late ? LateError(call, /*was_running=*/true) : ShuttingDownError();
    }
    absl::StatusOr<models::Answer>& answer = *result.answers[i];
    if (!answer.ok()) {
      metrics_.WastedTokens(labels, late ? "deadline" : "error", call.item->usage().input_tokens);
      answers.emplace_back(std::move(call.done), answer.status());
      continue;
    }
    const double waited = absl::ToDoubleSeconds(result.started - call.submitted);
    Completed completed{.answer = *std::move(answer),
                        .queue_seconds = std::max(0.0, waited - call.prepare_seconds),
                        .compute_seconds = result.forward_seconds + result.take_seconds,
                        .total_seconds = absl::ToDoubleSeconds(now - call.arrival()),
                        .batch_items = static_cast<int>(freed.size())};
    answers.emplace_back(std::move(call.done), std::move(completed));
  }
  Answer(std::move(answers), /*inline_allowed=*/!more);
}

void Engine::Answer(std::vector<std::pair<Reply<Completed>, absl::StatusOr<Completed>>> answers,
                    bool inline_allowed) {
  const auto small = [](const auto& item) {
    return AnswerBytes(item.second) <= kInlineAnswerBytes;
  };
  if (inline_allowed && std::all_of(answers.begin(), answers.end(), small)) {
    for (auto& [done, answer] : answers) Deliver(done, std::move(answer));
    return;
  }
  replies_.Add([answers = std::move(answers)]() mutable {
    for (auto& [done, answer] : answers) Deliver(done, std::move(answer));
  });
}

void Engine::Cancel(CallId id) { EndEarly(id, CancelledError()); }

void Engine::EndEarly(CallId id, absl::Status why) {
  CallPtr freed;
  absl::MutexLock lock(&mutex_);
  EngineCall* call = Find(id);
  if (call == nullptr || call->done == nullptr) return;
  Ending ending = TakeEnding(*call);
  const ModelLabels labels = LabelsOf(*call->model);
  const CancelOutcome outcome = DevicesOf(*call->model).queue.Cancel(id);
  const bool running = outcome == CancelOutcome::kRunning;
  metrics_.Cancelled(labels, running ? CancelStage::kRunning : CancelStage::kQueued);
  if (running) metrics_.WastedTokens(labels, "cancelled", SpentTokens(*call));
  const std::shared_ptr<CallGroup> group = call->group;
  const bool ours = call->stage == CallStage::kPreparing
                        ? pool_.Remove(id)
                        : call->stage == CallStage::kGathered || outcome == CancelOutcome::kRemoved;
  if (ours) freed = Free(id);
  // Never inside the caller, who may hold locks that `done` takes, nor under this mutex.
  EndLater(std::move(ending), std::move(why));
  if (group == nullptr) return;
  for (const CallPtr& other : Break(*group)) {
    if (other->done != nullptr) EndLater(TakeEnding(*other), CancelledError());
  }
}

void Engine::Depart(Devices& devices, std::span<const Departure> departures) {
  for (const Departure& departure : departures) {
    Ending ending;
    CallPtr freed;
    std::vector<CallPtr> others;
    absl::Status why;
    {
      absl::MutexLock lock(&mutex_);
      EngineCall* call = Find(departure.id);
      if (call == nullptr) continue;
      ending = TakeEnding(*call);
      why = DepartedError(departure, *call);
      const ModelLabels labels = LabelsOf(*call->model);
      if (call->group != nullptr) {
        const std::shared_ptr<CallGroup> group = call->group;
        if (call->stage == CallStage::kGathered || pool_.Remove(departure.id)) {
          freed = Free(departure.id);
        }
        others = Break(*group);
      } else if (call->stage == CallStage::kPreparing) {
        if (pool_.Remove(departure.id)) freed = Free(departure.id);
      } else if (call->stage == CallStage::kQueued && !departure.was_running) {
        // A call that departed as an expected one may have been admitted since, so the queue
        // decides.
        if (devices.queue.Cancel(departure.id) != CancelOutcome::kRunning) {
          freed = Free(departure.id);
        }
      }
      if (ending && departure.was_running) {
        metrics_.WastedTokens(labels, "deadline", SpentTokens(*call));
      } else if (ending && !departure.lost) {
        metrics_.Rejected(labels,
                          departure.memory ? RejectReason::kMemory : RejectReason::kDeadline);
      }
    }
    if (ending) End(std::move(ending), why);
    for (const CallPtr& other : others) {
      if (other->done != nullptr) End(TakeEnding(*other), why);
    }
  }
}

size_t Engine::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_.size();
}

size_t Engine::waiting() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(std::count_if(calls_.begin(), calls_.end(), [](const auto& entry) {
    return entry.second->stage == CallStage::kQueued;
  }));
}

void Engine::Shutdown() {
  absl::MutexLock one_at_a_time(&shutdown_mutex_);
  std::vector<Ending> endings;
  std::vector<CallPtr> freed;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    std::vector<CallId> waiting;
    for (const auto& [id, call] : calls_) {
      if (call->done != nullptr) endings.push_back(TakeEnding(*call));
      const CancelOutcome outcome = DevicesOf(*call->model).queue.Cancel(id);
      const bool waits = call->stage == CallStage::kQueued || call->stage == CallStage::kGathered;
      if (waits && outcome == CancelOutcome::kRemoved) {
        waiting.push_back(id);
      }
    }
    for (const CallId id : waiting) freed.push_back(Free(id));
  }
  for (Ending& ending : endings) End(std::move(ending), ShuttingDownError());
  pool_.Stop();
  for (const auto& devices : devices_) {
    for (const auto& lane : devices->lanes) lane->executor.Stop();
  }
  replies_.Drain();
}

bool Engine::AwaitIdle(absl::Time until) {
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); };
  return idle_.AwaitFor(&mutex_, absl::Condition(&none), until - clock_.Now());
}

}  // namespace longview::server
