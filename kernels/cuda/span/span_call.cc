#include "kernels/cuda/span/span_call.h"

#include "kernels/span/softmax_state.h"

namespace longview::kernels::cuda {
namespace {

// Do all rows and heads of a tensor start at multiples of `bytes`?
bool StartsAt(const void* data, int64_t row_stride, int64_t head_stride, Element element,
              int bytes) {
  const int64_t size = ElementBytes(element);
  return reinterpret_cast<uintptr_t>(data) % bytes == 0 && row_stride * size % bytes == 0 &&
         head_stride * size % bytes == 0;
}

}  // namespace

void PrepareCall(SpanCall* call, void* partials, int64_t partial_slots) {
  call->q_pairs = call->element != Element::kFloat32 &&
                  StartsAt(call->q, call->q_row_stride, call->q_head_stride, call->element, 4);
  call->out_pairs =
      call->element != Element::kFloat32 &&
      StartsAt(call->out, call->out_row_stride, call->out_head_stride, call->element, 4);
  for (int s = 0; s < call->sources_used; ++s) {
    SpanSource& source = call->sources[s];
    if (source.layout != Layout::kRows) {
      source.k_row_stride = BlockPitch(call->Dk);
      source.v_row_stride = BlockPitch(call->Dv);
      source.k_head_stride = kBlockSlots * source.k_row_stride;
      source.v_head_stride = kBlockSlots * source.v_row_stride;
    }
    source.pieces =
        StartsAt(source.k, source.k_row_stride, source.k_head_stride, call->element, 16) &&
        StartsAt(source.v, source.v_row_stride, source.v_head_stride, call->element, 16);
  }
  if (partial_slots == 0) return;
  const PartialStates states =
      CarvePartials(static_cast<std::byte*>(partials), partial_slots, call->Dv);
  call->part_m = states.m;
  call->part_l = states.l;
  call->part_o = states.o;
  call->part_stride = states.o_stride;
}

}  // namespace longview::kernels::cuda
