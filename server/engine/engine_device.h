// Types shared by the parts of Engine, and included by these alone.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/cost_history.h"
#include "server/engine/engine.h"
#include "server/engine/engine_call.h"
#include "server/engine/executor.h"
#include "server/engine/refusals.h"
#include "server/engine/step_pace.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/device_queue.h"

namespace longview::server {

// A device and the thread that works on it.
struct Engine::Lane {
  Lane(Engine& engine, DeviceQueue& queue, std::string device, int lane)
      : name(device),
        number(lane),
        executor(
            queue, LaneDevice(std::move(device), lane),
            [&engine](const Batch& batch) { return engine.Start(batch); },
            [this, &engine, &queue](BatchResult result) {
              engine.Finish(std::move(result), /*more=*/queue.HasWork(number));
            },
            [&engine](StepResult result) { engine.Step(std::move(result)); },
            [&engine](const LaneDevice& lost) { engine.Lose(lost); }) {}

  const std::string name;
  const int number;
  Executor executor;
};

// The devices that take from one queue; every model of one of them is on all.
struct Engine::Devices {
  Devices(Engine& engine, const std::vector<std::string>& names)
      : queue(OptionsFor(engine.options_.scheduler, names), engine.clock_,
              [this, &engine](std::span<const Departure> d) { engine.Depart(*this, d); }) {
    for (const std::string& name : names) {
      const int number = static_cast<int>(lanes.size());
      lanes.push_back(std::make_unique<Lane>(engine, queue, name, number));
    }
  }

  static SchedulerOptions OptionsFor(SchedulerOptions options,
                                     const std::vector<std::string>& names) {
    options.lanes = static_cast<int>(names.size());
    // On other devices the batches of a model share a workspace, so two must not overlap.
    options.nests_within_model = names.front() == "cpu";
    return options;
  }

  bool lost() const {
    return std::all_of(lanes.begin(), lanes.end(),
                       [this](const auto& lane) { return queue.lost(lane->number); });
  }

  DeviceQueue queue;
  std::vector<std::unique_ptr<Lane>> lanes;
};

// A model that calls came for: its queue, and what its work took.
struct Engine::ModelUse {
  std::weak_ptr<const ServedModel> model;
  ModelLabels labels;
  const Devices* devices;
  CostHistory batched = {}, generated = {};
  StepPace steps = {};
  CostHistory& HistoryOf(bool generates) { return generates ? generated : batched; }
  // The seconds of a cost at the pace of late.
  models::Cost Paced(models::Cost cost, bool generates, absl::Time now) const;
};

// Deleter of a document: frees it on its device's thread.
struct Engine::DocumentEnd {
  Devices* devices;
  Lane* lane;
  ModelHandle model;
  std::shared_ptr<models::Document> document;

  void operator()(models::Document* key) {
    lane->executor.Post([devices = devices, lane = lane, key, model = std::move(model),
                         document = std::move(document)]() mutable {
      document.reset();
      devices->queue.CloseDocument(reinterpret_cast<uintptr_t>(key), lane->number);
    });
  }
};

// The error of a call whose deadline has passed, or came out of reach while it waited.
inline absl::Status LateError(const EngineCall& call, bool was_running) {
  if (!call.deadline_imposed) return DeadlineError(was_running);
  return TimeoutError(call.info.deadline - call.arrival(), was_running);
}

inline ModelLabels LabelsOf(const ServedModel& model) { return {model.name, model.version}; }

// A model that generates may have other tasks too: the scheduler knows its steps by another id.
constexpr ModelId kStepsOf = ModelId{1} << 31;

bool Generates(const models::ModelInfo& info, models::Task task);

// `generates` as above says of the request; `cost` at the pace of late (ModelUse::Paced); `lane`:
// of its document, or -1.
inline Ticket TicketOf(CallId id, const ServedModel& model, bool generates, const CallInfo& info,
                       const models::Cost& cost, int lane) {
  Ticket ticket;
  ticket.id = id;
  ticket.model = model.id;
  ticket.client = info.client;
  ticket.weight = info.weight;
  ticket.list = static_cast<double>(info.refused_together);
  ticket.arrival = info.arrival;
  ticket.seconds = cost.seconds;
  ticket.deadline = info.deadline;
  if (generates) {
    ticket.model |= kStepsOf;
    ticket.prompt_seconds = cost.prompt_seconds;
    ticket.lane = lane;
    ticket.bytes = cost.state_bytes;
    ticket.prefill_alignment = model.model->info().prefill_alignment;
    ticket.step_seconds = model.model->StepSeconds();
  } else {
    ticket.bytes = cost.state_bytes + cost.workspace_bytes;
  }
  return ticket;
}

}  // namespace longview::server
