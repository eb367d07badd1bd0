// What the parts of EngineImpl share. Included by engine_*.cc only.
#pragma once

#include <string>
#include <utility>

#include "server/engine_impl.h"

namespace longview::server {

// A device's queue and the thread that works it off.
struct EngineImpl::Device {
  Device(EngineImpl& engine, std::string device_name)
      : name(std::move(device_name)),
        queue(engine.options_.scheduler, engine.clock_,
              [this, &engine](std::span<const Departure> d) { engine.Depart(*this, d); }),
        executor(
            queue, [&engine](const Batch& batch) { return engine.Start(batch); },
            [this, &engine](BatchResult result) { engine.Finish(*this, std::move(result)); },
            [this, &engine](StepResult result) { engine.Step(*this, std::move(result)); }) {}

  const std::string name;
  DeviceQueue queue;
  Executor executor;
};

inline ModelLabels LabelsOf(const ServedModel& model) { return {model.name, model.version}; }

// What a request holds on to while it waits to be prepared.
size_t RequestBytes(const models::Request& request);

// A model that generates may have other tasks too: the scheduler knows its steps by another id.
constexpr ModelId kStepsOf = ModelId{1} << 31;

bool Generates(const models::ModelInfo& info, models::Task task);

// `generates` as above says of the request; `pace` of the model's history, for what is computed in
// one batch (steps have a pace of their own, scheduler/roster.h).
inline Ticket TicketOf(CallId id, const ServedModel& model, bool generates, const CallInfo& info,
                       const models::Cost& cost, double pace) {
  Ticket ticket;
  ticket.id = id;
  ticket.model = model.id;
  ticket.client = info.client;
  ticket.seconds = generates ? cost.seconds : cost.seconds * pace;
  ticket.deadline = info.deadline;
  if (generates) {
    ticket.model |= kStepsOf;
    ticket.bytes = cost.state_bytes;
    ticket.granule = model.model->info().prefill_granule;
    ticket.step_seconds = model.model->StepSeconds();
  } else {
    ticket.bytes = cost.state_bytes + cost.workspace_bytes;
  }
  return ticket;
}

}  // namespace longview::server
