// Kernel choice per call, with the number of blocks and the bytes of shared memory: decided on the
// host, from the plan, the call and the device alone.
//
// Stateless functions: thread-safe.
#pragma once

#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/span/span_api.h"
#include "kernels/cuda/span/span_call.h"

namespace longview::kernels::cuda {

// Query rows a planner should put into one tile for the kernels of a device.
inline constexpr int kDeviceTileRows = 64;

// Columns the kernels pad heads to: 32, 64, 96 or 128.
// REQUIRES: 1 <= Dk, Dv <= kMaxHeadDim.
int PaddedDim(int Dk, int Dv);

// The shared memory of one block of kTiles, over a plan with or without biases.
int SharedBytes(Element element, int padded_dim, bool biased);

// The phase a call belongs to. A step that feeds prompts and extends sequences makes one of each:
// which kernel runs a row must not depend on its batch mates.
enum class SpanPhase { kPrefill, kDecode };

// The kernel of a call: a function of the phase, the device (`warpgroups`: SpanApi's answer) and
// what all calls of a layer have in common, element, head size and tables, which need not be filled
// in but for whether they are there. Never of the batch.
SpanKernel KernelOf(const SpanCall& call, SpanPhase phase, bool warpgroups);

// The launch of a call by a kernel over any plan of this capacity.
SpanLaunch ShapeLaunch(const PlanCapacity& capacity, const SpanCall& call, SpanKernel kernel);

// Aborts on what no kernel takes: head sizes, strides, a key_step other than 1, sources and tables
// beyond the call's, 64-slot blocks of another element.
void CheckDeviceCall(const Plan& plan, const SpanCall& call);

}  // namespace longview::kernels::cuda
