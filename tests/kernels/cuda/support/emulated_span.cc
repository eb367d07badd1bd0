#include "tests/kernels/cuda/support/emulated_span.h"

#include <cstring>
#include <memory>

#include "kernels/cuda/span/ref_row.h"
#include "kernels/cuda/span/span_rows.h"
#include "kernels/cuda/span/tile_program.h"
#include "kernels/cuda/span/variants.h"
#include "tests/kernels/cuda/support/emulated_machine.h"
#include "tests/kernels/cuda/support/emulated_warpgroup.h"

namespace longview::kernels::cuda::testing {
namespace {

void RunReference(const PlanView& plan, const SpanCall& call, const Item& item) {
  for (int row = 0; row < plan.tiles[item.tile].rows; ++row) RefRow(plan, call, item).Run(row);
}

// Registers as a GPU leaves them, with anything.
template <class Program>
std::unique_ptr<typename Program::Lanes> AnyLanes() {
  auto lanes = std::make_unique<typename Program::Lanes>();
  std::memset(static_cast<void*>(lanes.get()), 0x7f, sizeof(*lanes));
  return lanes;
}

// Runs a program on one item.
template <class Program>
void RunProgram(int shared_bytes, const PlanView& plan, const SpanCall& call, const Item& item,
                ThreadOrder order) {
  const auto lanes = AnyLanes<Program>();
  EmulatedMachine machine(shared_bytes, order);
  Program(machine, plan, call, item).Run(*lanes);
}

template <int kD, Element kElement>
void RunWarpgroup(int shared_bytes, const PlanView& plan, const SpanCall& call,
                  const CallBoxes& boxes, const Item& item, ThreadOrder order) {
  using Program = SpanWarpgroup<EmulatedWarpgroup, kD, kElement>;
  const auto lanes = AnyLanes<Program>();
  EmulatedWarpgroup machine(shared_bytes, Program::Shared::kBarriersAt, boxes, order);
  Program(machine, plan, call, boxes.of, item).Run(*lanes);
}

// Runs an item of a 16-bit call as span_warpgroup.cu does.
void RunWarpgroupItem(const SpanLaunch& launch, const PlanView& plan, const SpanCall& call,
                      const CallBoxes& boxes, const Item& item, ThreadOrder order) {
  const auto run = [&]<Element kElement>(ElementType<kElement>) {
    const auto with_dim =
        launch.padded_dim == 64 ? RunWarpgroup<64, kElement> : RunWarpgroup<128, kElement>;
    with_dim(launch.shared_bytes, plan, call, boxes, item, order);
  };
  if (call.element == Element::kBFloat16) {
    run(ElementType<Element::kBFloat16>());
  } else {
    run(ElementType<Element::kFloat16>());
  }
}

void RunItem(const SpanLaunch& launch, const PlanView& plan, const SpanCall& call, const Item& item,
             ThreadOrder order) {
  WithPaddedDim(launch.padded_dim, [&]<int kD>(HeadDim<kD>) {
    WithElement(call.element, [&]<Element kElement>(ElementType<kElement>) {
      if (launch.kernel == SpanKernel::kRows) {
        using Program = SpanRows<EmulatedMachine, kD, kElement>;
        RunProgram<Program>(Program::Shared::kBytes, plan, call, item, order);
      } else {
        using Program = TileProgram<EmulatedMachine, kD, kElement>;
        RunProgram<Program>(launch.shared_bytes, plan, call, item, order);
      }
    });
  });
}

template <ThreadOrder kOrder>
Status Forward(Stream*, const PlanView* plan, const SpanCall* call, const SpanLaunch* launch) {
  const CallBoxes boxes = BoxesOf(*call);
  for (int i = 0; i < launch->items; ++i) {
    if (i >= plan->counts->items) continue;
    const Item& item = plan->items[i];
    if (launch->kernel == SpanKernel::kReference) {
      RunReference(*plan, *call, item);
    } else if (launch->kernel == SpanKernel::kWarpgroups) {
      RunWarpgroupItem(*launch, *plan, *call, boxes, item, kOrder);
    } else {
      RunItem(*launch, *plan, *call, item, kOrder);
    }
  }
  return 0;
}

Status MergeStates(Stream*, const PlanView* plan, const SpanCall* call, const SpanLaunch* launch) {
  for (int i = 0; i < launch->merges; ++i) {
    if (i >= plan->counts->merges) continue;
    const Merge& merge = plan->merges[i];
    const int64_t at = merge.row * call->out_row_stride + merge.head * call->out_head_stride;
    for (int d = 0; d < call->Dv; ++d) {
      StoreElement(call->out, call->element, at + d, MergedElement(*call, merge, d));
    }
  }
  return 0;
}

}  // namespace

int64_t EmulatedBoxes() { return EmulatedLoader::boxes_asked; }

SpanApi EmulatedSpanApi(ThreadOrder order) {
  return {.prepare = [](int32_t) -> Status { return 0; },
          .warpgroups = [](int32_t) -> int32_t { return 1; },
          .forward = order == ThreadOrder::kRising ? Forward<ThreadOrder::kRising>
                                                   : Forward<ThreadOrder::kFalling>,
          .merge = MergeStates};
}

}  // namespace longview::kernels::cuda::testing
