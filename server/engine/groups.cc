// Calls that are admitted together: each is prepared by itself, the last to be ready admits all.
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/engine/engine.h"
#include "server/engine/engine_device.h"
#include "server/engine/refusals.h"

namespace longview::server {

std::vector<CallId> Engine::SubmitTogether(ModelHandle model, std::vector<models::Request> requests,
                                           const CallInfo& info,
                                           std::vector<Reply<Completed>> done) {
  const auto group = std::make_shared<CallGroup>();
  group->size = requests.size();
  std::vector<CallId> ids;
  for (size_t i = 0; i < requests.size(); ++i) {
    auto call = std::make_unique<EngineCall>();
    call->info = info;
    call->model = model;
    call->done = std::move(done[i]);
    call->group = group;
    const CallId id = Accept(std::move(call), std::move(requests[i]));
    if (id != 0) {
      ids.push_back(id);
      continue;
    }
    // The refused call is answered already; the others cannot be admitted without it.
    for (const CallId accepted : ids) EndEarly(accepted, CancelledError());
    for (size_t left = i + 1; left < done.size(); ++left) {
      EndLater({std::move(done[left]), nullptr}, CancelledError());
    }
    return {};
  }
  return ids;
}

std::vector<Engine::CallPtr> Engine::Break(CallGroup& group) {
  std::vector<CallPtr> broken;
  group.failed = true;
  for (const CallId id : std::exchange(group.gathered, {})) {
    const EngineCall* const call = Find(id);
    if (call == nullptr) continue;
    DevicesOf(*call->model).queue.Cancel(id);
    broken.push_back(Free(id));
  }
  return broken;
}

void Engine::GatherPrepared(EngineCall& call, absl::Status status, Where where) {
  const std::shared_ptr<CallGroup> group = call.group;
  DeviceQueue& queue = DevicesOf(*call.model).queue;
  CallPtr own;
  std::vector<CallPtr> others, displaced;
  absl::Status why_others = CancelledError();
  Admission admission;
  {
    absl::MutexLock lock(&mutex_);
    if (!status.ok() || call.done == nullptr || group->failed) {
      if (status.ok()) status = CancelledError();
      queue.Cancel(call.id);
      own = Free(call.id);
      others = Break(*group);
    } else {
      if (where == Where::kPool) {
        UseOf(call.model).batched.Prepared(call.bytes, call.item->cost().seconds);
      }
      call.stage = CallStage::kGathered;
      group->gathered.push_back(call.id);
      if (group->gathered.size() < group->size) return;
      std::vector<Ticket> tickets;
      for (const CallId id : group->gathered) tickets.push_back(PreparedTicket(*Find(id)));
      admission = queue.Admit(tickets);
      if (admission.verdict == Verdict::kAdmitted) {
        for (const CallId id : group->gathered) EnterQueue(*Find(id));
        for (const TicketId other : admission.displaced) displaced.push_back(Free(other));
      } else {
        why_others = RefusalError(admission);
        metrics_.Rejected(LabelsOf(*call.model), ReasonOf(admission.verdict));
        others = Break(*group);
      }
    }
  }
  if (own != nullptr && own->done != nullptr) EndAt(where, *own, std::move(status));
  for (const CallPtr& other : others) {
    if (other->done != nullptr) EndAt(where, *other, why_others);
  }
  EndDisplaced(std::move(displaced), admission, where);
}

}  // namespace longview::server
