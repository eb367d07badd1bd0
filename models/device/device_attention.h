// The attention executor over an uploaded plan, as a family calls it in every layer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/span/launch_shape.h"
#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/span/span_api.h"
#include "kernels/cuda/span/span_call.h"
#include "models/dense/compute.h"
#include "models/device/device.h"
#include "models/device/staged_lists.h"

namespace longview::models {

// A plan on the device. Plain data: valid as long as the lists it was staged in.
struct DevicePlan {
  kernels::cuda::PlanCapacity capacity;
  kernels::cuda::PlanView view = {};  // In device memory.

  bool empty() const { return capacity.items == 0; }
};

// Throws DeviceError if the plan has more sources than a device's kernels take: a property of the
// pattern, so it shows when a model loads. `rounded`: with the capacity of plans a little larger,
// so that plans of neighbouring steps lie alike.
DevicePlan StagePlan(const kernels::Plan& plan, StagedLists& lists, bool rounded = false);
kernels::cuda::PlanCapacity StagedCapacity(const kernels::Plan& plan, bool rounded);

// Bytes of lists that StagePlan takes, and the most it takes for the same rows and keys whatever
// keys and rows among them are masked: then every block that a tile reads may be a span of its own
// with an interval for each row.
size_t PlanBytes(const kernels::Plan& plan);
size_t MaskedPlanBytes(const kernels::Plan& plan);

// Bytes of the plan's unfinished states.
size_t DevicePartialBytes(const DevicePlan& plan, int Dv);

// Hands one attention to the stream. `partials`: DevicePartialBytes of device memory. Nothing for
// an empty plan. `phase` decides which kernel runs it. Throws DeviceError.
void Attend(const Device& device, const DevicePlan& plan, kernels::cuda::SpanCall call,
            void* partials, kernels::cuda::SpanPhase phase = kernels::cuda::SpanPhase::kPrefill);

}  // namespace longview::models
