#include "server/engine/step_runner.h"

#include <algorithm>
#include <utility>

#include "server/engine/refusals.h"
#include "server/errors.h"
#include "server/exception_guard.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {
namespace {

StepOutcome OutcomeOf(const StepShare& share) {
  StepOutcome outcome;
  outcome.id = share.call->id;
  outcome.done = share.over;
  if (share.call->document != nullptr && share.over) {
    outcome.hold = reinterpret_cast<uintptr_t>(share.call->document.get());
    outcome.hold_bytes = share.state_bytes;
  }
  if (share.over) return outcome;
  const models::Generation::Need need = share.call->generation->need();
  outcome.need = {need.prefill,     need.prefill_seconds,  need.decode_seconds,
                  share.call->pace, share.call->read_pace, need.prompt_seconds};
  return outcome;
}

}  // namespace

void StepRunner::Run(const Batch& turn) {
  StepResult result;
  result.kind = turn.kind;
  result.started = SteadyNow();
  if (turn.kind == TurnKind::kMembership) {
    RunMembership(turn, result);
  } else {
    RunStep(turn, result);
  }
  result.seconds = absl::ToDoubleSeconds(SteadyNow() - result.started);
  std::vector<StepOutcome> outcomes;
  outcomes.reserve(result.shares.size());
  for (const StepShare& share : result.shares) outcomes.push_back(OutcomeOf(share));
  queue_.Finish(outcomes, device_.lane());
  on_stepped_(std::move(result));
}

void StepRunner::EndAll(const absl::Status& why) {
  StepResult result;
  result.kind = TurnKind::kMembership;
  result.started = SteadyNow();
  std::vector<EngineCall*> calls;
  for (const auto& [id, call] : live_) calls.push_back(call);
  for (EngineCall* call : calls) {
    StepShare& share = result.shares.emplace_back();
    share.call = call;
    share.answer = why;
    End(share);
  }
  if (!result.shares.empty()) on_stepped_(std::move(result));
}

void StepRunner::End(StepShare& share) {
  share.over = true;
  share.call->generation.reset();
  if (share.call->document != nullptr) share.state_bytes = share.call->document->state_bytes();
  live_.erase(share.call->id);
}

void StepRunner::Collect(StepShare& share) {
  models::Generation& generation = *share.call->generation;
  const absl::Status status = Guarded([&] {
    if (share.call->tells_pieces) share.pieces = generation.TakePieces();
    if (!generation.done()) return absl::OkStatus();
    absl::StatusOr<models::Answer> answer = generation.Take();
    if (!answer.ok()) answer = device_.CheckLost(answer.status());
    share.answer = std::move(answer);
    return absl::OkStatus();
  });
  if (!status.ok()) share.answer = device_.CheckLost(status);
  if (share.answer) End(share);
}

StepShare StepRunner::StartCall(EngineCall& call) {
  StepShare share;
  share.call = &call;
  live_.emplace(call.id, &call);
  const TurnWatch::Scope scope(device_.watch(), call.model->name, call.item->cost().seconds);
  auto started = Guarded([&] { return call.model->On(device_.name()).Start(*call.item); });
  if (!started.ok()) {
    share.answer = device_.CheckLost(started.status());
    End(share);
    return share;
  }
  call.generation = *std::move(started);
  call.started = SteadyNow();
  if (call.generation->done()) Collect(share);
  return share;
}

void StepRunner::RunMembership(const Batch& turn, StepResult& result) {
  for (const TicketId id : turn.leaving) {
    StepShare& share = result.shares.emplace_back();
    share.call = live_.at(id);
    End(share);
  }
  for (EngineCall* call : on_start_(turn)) result.shares.push_back(StartCall(*call));
}

bool StepRunner::RunLayers(models::Run& run, const Batch& turn, std::vector<bool>& wanted) {
  size_t left = wanted.size();
  for (bool more = true; more;) {
    for (const TicketId id : queue_.TakeDrops(device_.lane()).tickets) {
      const auto i = static_cast<size_t>(std::find(turn.tickets.begin(), turn.tickets.end(), id) -
                                         turn.tickets.begin());
      run.Drop(static_cast<int>(i));
      wanted[i] = false;
      --left;
    }
    if (left == 0 || queue_.stopped()) return false;
    more = run.Advance();
    device_.watch().Beat();
  }
  return true;
}

void StepRunner::RunStep(const Batch& turn, StepResult& result) {
  const TurnWatch::Scope scope(device_.watch(), live_.at(turn.tickets.front())->model->name,
                               turn.seconds);
  std::vector<models::StepGrant> grants;
  models::Model* model = nullptr;
  for (size_t i = 0; i < turn.tickets.size(); ++i) {
    EngineCall* call = live_.at(turn.tickets[i]);
    const models::Generation::Need need = call->generation->need();
    StepShare& share = result.shares.emplace_back();
    share.call = call;
    share.prefill = turn.prefill[i];
    share.sequences = share.prefill > 0 ? 0 : need.sequences;
    if (share.prefill > 0) {
      result.prefill_seconds += share.prefill * need.prefill_seconds;
      // The last of a prompt brings the first tokens.
      if (share.prefill == need.prefill) share.sequences = need.sequences;
    } else {
      result.decode_seconds += need.decode_seconds;
    }
    grants.push_back({call->generation.get(), share.prefill});
    model = &call->model->On(device_.name());
  }
  std::vector<bool> wanted(grants.size(), true);
  bool completed = false;
  const absl::Status status = Guarded([&] {
    const std::unique_ptr<models::Run> run = model->BeginStep(grants);
    completed = RunLayers(*run, turn, wanted);
    return absl::OkStatus();
  });
  for (size_t i = 0; i < grants.size(); ++i) {
    StepShare& share = result.shares[i];
    if (wanted[i] && completed && status.ok()) {
      Collect(share);
      continue;
    }
    share.prefill = share.sequences = 0;
    result.prefill_seconds = result.decode_seconds = 0;
    if (wanted[i] && !status.ok()) share.answer = device_.CheckLost(status);
    if (wanted[i] && status.ok()) share.answer = ShuttingDownError();  // The queue was stopped.
    End(share);
  }
}

}  // namespace longview::server
