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

kernels::cuda::Element DeviceElement(Compute compute);

// A plan on the device. Plain data: valid as long as the lists it was staged in.
struct DevicePlan {
  kernels::cuda::PlanCapacity capacity;
  kernels::cuda::PlanView view = {};  // Of device memory.

  bool empty() const { return capacity.items == 0; }
};

// Throws DeviceError if the plan has more sources than a device's kernels take: a property of the
// pattern, so it shows when a model loads. `rounded`: with the capacity of plans a little larger, so
// that plans of neighbouring steps lie alike.
DevicePlan StagePlan(const kernels::Plan& plan, StagedLists& lists, bool rounded = false);
kernels::cuda::PlanCapacity StagedCapacity(const kernels::Plan& plan, bool rounded);

// Heads side by side in rows of heads * head_dim elements, queries and outputs; scores are divided
// by the root of head_dim. Tensors are to be filled in.
kernels::cuda::SpanCall DeviceHeadsCall(Compute compute, int heads, int head_dim);

// Keys and values of the compute type in rows `row_stride` elements apart, heads side by side.
kernels::cuda::SpanSource DeviceHeadsSource(const void* k, const void* v, int64_t row_stride,
                                            int head_dim);

// What StagePlan takes of lists, and the most it takes of them for the same rows and keys whatever
// keys and rows among them are masked: then every block that a tile reads may be a span of its own
// with an interval for each row.
size_t PlanBytes(const kernels::Plan& plan);
size_t MaskedPlanBytes(const kernels::Plan& plan);

// Bytes of the plan's unfinished states.
size_t DevicePartialBytes(const DevicePlan& plan, int Dv);

// Hands one attention to the stream. `partials`: DevicePartialBytes of device memory. Nothing for
// an empty plan. `phase` decides which kernel runs it. Throws DeviceError.
void Attend(const Device& device, const DevicePlan& plan, kernels::cuda::SpanCall call,
            void* partials,
            kernels::cuda::SpanPhase phase = kernels::cuda::SpanPhase::kPrefill);

}  // namespace longview::models
