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
            [this, &engine](BatchResult result) { engine.Finish(*this, std::move(result)); }) {}

  const std::string name;
  DeviceQueue queue;
  Executor executor;
};

inline ModelLabels LabelsOf(const ServedModel& model) { return {model.name, model.version}; }

// What a request holds on to while it waits to be prepared.
size_t RequestBytes(const models::Request& request);

inline Ticket TicketOf(CallId id, uint32_t model, const CallInfo& info, const models::Cost& cost) {
  return {.id = id,
          .model = model,
          .client = info.client,
          .seconds = cost.seconds,
          .bytes = cost.state_bytes + cost.workspace_bytes,
          .deadline = info.deadline};
}

}  // namespace longview::server
