#include "server/engine_impl.h"

#include <algorithm>
#include <utility>

#include "server/engine_device.h"
#include "server/refusals.h"
#include "server/surprise.h"

namespace longview::server {

using models::Request;

namespace {

// Answers this large are not worth the device's thread.
constexpr size_t kInlineAnswerBytes = 64 << 10;

size_t AnswerBytes(const absl::StatusOr<Completed>& answer) {
  size_t bytes = 0;
  if (!answer.ok()) return bytes;
  for (const models::HostTensor& tensor : answer->answer.tensors) bytes += tensor.data.size();
  return bytes;
}

// Token ids are checked and copied, in less time than it takes to change threads.
bool IsCheap(const Request& request) {
  return request.tokens && !request.text && !request.text_pair && !request.question &&
         request.choices.empty() && request.choice_tokens.empty() && request.global_tokens.empty();
}

RejectReason ReasonOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kQueueFull:
      return RejectReason::kQueue;
    case Verdict::kTooLarge:
    case Verdict::kMemoryFull:
      return RejectReason::kMemory;
    case Verdict::kLost:
      return RejectReason::kDraining;  // UNAVAILABLE, as of a server that leaves.
    default:
      return RejectReason::kDeadline;
  }
}

// "cuda" of "cuda:1".
std::string_view KindOf(std::string_view device) { return device.substr(0, device.find(':')); }

absl::Status DepartedError(const Departure& departure) {
  if (departure.lost) return DevicesLostError();
  return departure.memory ? MemoryHeldError() : DeadlineError(departure.was_running);
}

// As the model predicted, whatever the pace.
double PredictedSeconds(const BatchResult& result) {
  double seconds = 0;
  for (const EngineCall* call : result.calls) seconds += call->item->cost().seconds;
  return seconds;
}

// What was computed for a running call.
int64_t SpentTokens(const EngineCall& call) {
  return call.generates ? call.read_tokens + call.sampled_tokens : call.item->usage().input_tokens;
}

}  // namespace

EngineImpl::EngineImpl(const EngineOptions& options, const Lifecycle& lifecycle, Metrics& metrics)
    : options_(options),
      lifecycle_(lifecycle),
      metrics_(metrics),
      pool_(options.prepare_threads, options.prepare_bytes) {
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

EngineImpl::~EngineImpl() {
  metrics_.SetSchedulerGauges({});
  Shutdown();
}

EngineImpl::Devices& EngineImpl::DevicesWith(std::string_view name) const {
  for (const auto& devices : devices_) {
    for (const auto& lane : devices->lanes) {
      if (lane->name == name) return *devices;
    }
  }
  return *devices_.front();
}

EngineImpl::Devices& EngineImpl::DevicesOf(const ServedModel& model) const {
  return DevicesWith(model.model->info().device);
}

EngineImpl::Lane& EngineImpl::LaneNamed(std::string_view name) const {
  const Devices& devices = DevicesWith(name);
  for (const auto& lane : devices.lanes) {
    if (lane->name == name) return *lane;
  }
  return *devices.lanes.front();
}

models::Model& EngineImpl::InstanceOf(const ServedModel& model, int lane) const {
  if (lane < 0) return *model.model;
  return model.On(DevicesOf(model).lanes[static_cast<size_t>(lane)]->name);
}

EngineCall* EngineImpl::Find(CallId id) {
  const auto it = calls_.find(id);
  return it == calls_.end() ? nullptr : it->second.get();
}

EngineImpl::CallPtr EngineImpl::Free(CallId id) {
  const auto it = calls_.find(id);
  if (it == calls_.end()) return nullptr;
  CallPtr call = std::move(it->second);
  calls_.erase(it);
  if (calls_.empty()) idle_.notify_all();
  return call;
}

EngineImpl::Ending EngineImpl::TakeEnding(EngineCall& call) {
  return {std::exchange(call.done, nullptr), std::move(call.events)};
}

void EngineImpl::EndLater(Ending ending, absl::StatusOr<Completed> result) {
  replies_.Add([ending = std::move(ending), result = std::move(result)]() mutable {
    ending.done(std::move(result));
  });
}

void EngineImpl::End(Ending ending, absl::StatusOr<Completed> result) {
  if (ending.events != nullptr) return EndLater(std::move(ending), std::move(result));
  ending.done(std::move(result));
}

CallId EngineImpl::Submit(ModelHandle model, Request request, const CallInfo& info,
                          Reply<Completed> done) {
  auto call = std::make_unique<EngineCall>();
  call->info = info;
  call->model = std::move(model);
  call->done = std::move(done);
  call->generates = Generates(call->model->model->info(), request.task);
  return Accept(std::move(call), std::move(request));
}

EngineImpl::ModelUse& EngineImpl::UseOf(const ModelHandle& model) {
  const auto known = models_.find(model->id);
  if (known != models_.end()) return known->second;
  std::erase_if(models_, [](const auto& use) { return use.second.model.expired(); });
  return models_[model->id] = {model, LabelsOf(*model), &DevicesOf(*model)};
}

CallId EngineImpl::Accept(CallPtr call, Request request) {
  DeviceQueue& queue = DevicesOf(*call->model).queue;
  const size_t bytes = call->bytes = RequestBytes(request);
  call->submitted = clock_.Now();
  call->lane = LaneOf(request.document);
  if (request.extend_document) call->document = request.document;
  call->request = std::move(request);

  const auto refuse = [&](RejectReason reason, absl::Status status) {
    metrics_.Rejected(LabelsOf(*call->model), reason);
    EndLater(TakeEnding(*call), std::move(status));
    return CallId{0};
  };
  // Before anybody else knows the call, and without changing threads.
  const bool cheap = IsCheap(call->request);
  const absl::Status prepared = cheap ? Prepare(*call) : absl::OkStatus();
  std::unique_lock lock(mutex_);
  if (stopped_ || !lifecycle_.accepting()) {
    lock.unlock();
    return refuse(RejectReason::kDraining, DrainingError());
  }
  const CallId id = call->id = ++last_id_;
  ModelUse& use = UseOf(call->model);
  if (!cheap) {
    const CostHistory& history = use.HistoryOf(call->generates);
    const Admission admission = queue.Expect(TicketOf(id, *call->model, call->generates, call->info,
                                                      {.seconds = history.Expected(bytes)},
                                                      history.PaceAt(call->submitted), call->lane));
    if (admission.verdict != Verdict::kAdmitted) {
      lock.unlock();
      return refuse(ReasonOf(admission.verdict), RefusalError(admission));
    }
    if (!pool_.Add({.id = id,
                    .deadline = call->info.deadline,
                    .bytes = bytes,
                    .run = [this, id](auto turn) { PreparePooled(id, turn); }})) {
      queue.Cancel(id);
      lock.unlock();
      return refuse(RejectReason::kMemory, PoolFullError(bytes, pool_.max_bytes()));
    }
  }
  EngineCall& accepted = *calls_.emplace(id, std::move(call)).first->second;
  if (!cheap) return id;
  lock.unlock();
  // Until it is admitted nobody else frees it.
  AdmitPrepared(accepted, prepared, Where::kCaller);
  return id;
}

void EngineImpl::PreparePooled(CallId id, PreprocessPool::Turn turn) {
  EngineCall* call;
  {
    std::unique_lock lock(mutex_);
    call = Find(id);
    if (turn == PreprocessPool::Turn::kStopped || call->done == nullptr) {
      DevicesOf(*call->model).queue.Cancel(id);
      const CallPtr freed = Free(id);
      lock.unlock();
      if (freed->done) EndLater(TakeEnding(*freed), DrainingError());
      return;
    }
  }
  AdmitPrepared(*call, Prepare(*call), Where::kPool);
}

absl::Status EngineImpl::Prepare(EngineCall& call) {
  const absl::Time start = clock_.Now();
  absl::Status status = Guarded([&]() -> absl::Status {
    const models::Model& model = InstanceOf(*call.model, call.lane);
    absl::StatusOr<std::unique_ptr<models::Item>> item = model.Prepare(call.request);
    if (item.ok()) call.item = *std::move(item);
    return item.status();
  });
  call.request = Request();
  call.prepare_seconds = absl::ToDoubleSeconds(clock_.Now() - start);
  metrics_.Computed(LabelsOf(*call.model), Phase::kPreprocess, call.prepare_seconds);
  return RefusalOrInternal(status);
}

void EngineImpl::AdmitPrepared(EngineCall& call, absl::Status status, Where where) {
  const CallId id = call.id;
  const ModelLabels labels = LabelsOf(*call.model);
  DeviceQueue& queue = DevicesOf(*call.model).queue;
  CallPtr freed;
  std::vector<CallPtr> displaced;
  absl::Duration retry = absl::ZeroDuration();
  {
    std::lock_guard lock(mutex_);
    std::optional<RejectReason> rejected;
    if (status.ok() && call.done != nullptr) {
      CostHistory& history = UseOf(call.model).HistoryOf(call.generates);
      if (where == Where::kPool) history.Prepared(call.bytes, call.item->cost().seconds);
      const Admission admission =
          queue.Admit(TicketOf(id, *call.model, call.generates, call.info, call.item->cost(),
                               history.PaceAt(clock_.Now()), call.lane));
      if (admission.verdict == Verdict::kAdmitted) {
        call.stage = CallStage::kQueued;
        if (call.events != nullptr && call.events->on_admitted != nullptr) {
          replies_.Add([events = call.events.get()] { events->on_admitted(); });
        }
        // Those another thread has already answered are freed here all the same.
        for (const TicketId other : admission.displaced) displaced.push_back(Free(other));
        retry = absl::Seconds(std::max(0.1, admission.wait_seconds));
      } else {
        status = RefusalError(admission);
        rejected = ReasonOf(admission.verdict);
      }
    } else {
      queue.Cancel(id);
    }
    if (call.stage == CallStage::kPreparing) freed = Free(id);
    if (rejected) metrics_.Rejected(labels, *rejected);
  }
  const auto end = [this, where](EngineCall& ended, absl::Status why) {
    if (where == Where::kCaller) return EndLater(TakeEnding(ended), std::move(why));
    End(TakeEnding(ended), std::move(why));
  };
  if (freed && freed->done) end(*freed, std::move(status));
  for (CallPtr& other : displaced) {
    if (other == nullptr || other->done == nullptr) continue;
    metrics_.Rejected(LabelsOf(*other->model), RejectReason::kQueue);
    end(*other, DisplacedError(retry));
  }
}

std::vector<EngineCall*> EngineImpl::Start(const Batch& batch) {
  std::vector<EngineCall*> calls;
  std::lock_guard lock(mutex_);
  for (const TicketId id : batch.tickets) {
    EngineCall* call = Find(id);
    call->stage = CallStage::kRunning;
    calls.push_back(call);
  }
  return calls;
}

void EngineImpl::RecordBatch(const BatchResult& result) {
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
                 result.forward_seconds);
}

void EngineImpl::Finish(BatchResult result, bool more) {
  RecordBatch(result);
  const ModelLabels labels = LabelsOf(*result.calls.front()->model);
  const absl::Time now = clock_.Now();
  std::vector<CallPtr> freed;
  {
    std::lock_guard lock(mutex_);
    // A batch that lost items says nothing about the prediction.
    if (result.dropped == 0 && !result.lost) {
      const double seconds = result.forward_seconds + result.take_seconds;
      UseOf(result.calls.front()->model).batched.Computed(PredictedSeconds(result), seconds, now);
    }
    for (const EngineCall* call : result.calls) freed.push_back(Free(call->id));
  }
  std::vector<std::pair<Reply<Completed>, absl::StatusOr<Completed>>> answers;
  for (size_t i = 0; i < freed.size(); ++i) {
    EngineCall& call = *freed[i];
    if (call.done == nullptr) continue;
    // Not done and not answered: dropped for its deadline by a thread that has not come to answer
    // it, or the executor was stopped.
    const bool late = !result.answers[i] && call.info.deadline <= now;
    if (!result.answers[i]) {
      result.answers[i] = late ? DeadlineError(/*was_running=*/true) : DrainingError();
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

void EngineImpl::Answer(std::vector<std::pair<Reply<Completed>, absl::StatusOr<Completed>>> answers,
                        bool inline_allowed) {
  const auto small = [](const auto& item) {
    return AnswerBytes(item.second) <= kInlineAnswerBytes;
  };
  if (inline_allowed && std::all_of(answers.begin(), answers.end(), small)) {
    for (auto& [done, answer] : answers) done(std::move(answer));
    return;
  }
  replies_.Add([answers = std::move(answers)]() mutable {
    for (auto& [done, answer] : answers) done(std::move(answer));
  });
}

void EngineImpl::Cancel(CallId id) {
  CallPtr freed;
  std::lock_guard lock(mutex_);
  EngineCall* call = Find(id);
  if (call == nullptr || call->done == nullptr) return;
  Ending ending = TakeEnding(*call);
  const ModelLabels labels = LabelsOf(*call->model);
  const CancelOutcome outcome = DevicesOf(*call->model).queue.Cancel(id);
  const bool running = outcome == CancelOutcome::kRunning;
  metrics_.Cancelled(labels, running ? CancelStage::kRunning : CancelStage::kQueued);
  if (running) metrics_.WastedTokens(labels, "cancelled", SpentTokens(*call));
  const bool ours =
      call->stage == CallStage::kPreparing ? pool_.Remove(id) : outcome == CancelOutcome::kRemoved;
  if (ours) freed = Free(id);
  EndLater(std::move(ending), CancelledError());
}

void EngineImpl::Depart(Devices& devices, std::span<const Departure> departures) {
  for (const Departure& departure : departures) {
    Ending ending;
    CallPtr freed;
    {
      std::lock_guard lock(mutex_);
      EngineCall* call = Find(departure.id);
      if (call == nullptr) continue;
      ending = TakeEnding(*call);
      const ModelLabels labels = LabelsOf(*call->model);
      if (call->stage == CallStage::kPreparing) {
        if (pool_.Remove(departure.id)) freed = Free(departure.id);
      } else if (call->stage == CallStage::kQueued && !departure.was_running) {
        // It may have been admitted since it left as an expected one.
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
    if (!ending) continue;
    End(std::move(ending), DepartedError(departure));
  }
}

size_t EngineImpl::calls() const {
  std::lock_guard lock(mutex_);
  return calls_.size();
}

void EngineImpl::Shutdown() {
  std::lock_guard one_at_a_time(shutdown_mutex_);
  std::vector<Ending> endings;
  std::vector<CallPtr> freed;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    std::vector<CallId> waiting;
    for (const auto& [id, call] : calls_) {
      if (call->done != nullptr) endings.push_back(TakeEnding(*call));
      const CancelOutcome outcome = DevicesOf(*call->model).queue.Cancel(id);
      if (call->stage == CallStage::kQueued && outcome == CancelOutcome::kRemoved) {
        waiting.push_back(id);
      }
    }
    for (const CallId id : waiting) freed.push_back(Free(id));
  }
  for (Ending& ending : endings) End(std::move(ending), DrainingError());
  pool_.Stop();
  for (const auto& devices : devices_) {
    for (const auto& lane : devices->lanes) lane->executor.Stop();
  }
}

bool EngineImpl::AwaitIdle(absl::Time until) {
  std::unique_lock lock(mutex_);
  const auto left = std::min(until - clock_.Now(), absl::Hours(24));
  return idle_.wait_for(lock, absl::ToChronoNanoseconds(left), [this] { return calls_.empty(); });
}

}  // namespace longview::server
