// Launches of span_warpgroup.h, and the tensor maps of a call. Compiled for sm_90a alone: on any
// other device there is no such kernel, which is how HasWarpgroups knows.
#include "kernels/cuda/span/span_warpgroup.h"

#include <cuda.h>

#include "kernels/cuda/base/checked.cuh"
#include "kernels/cuda/span/span_forward.cuh"
#include "kernels/cuda/span/variants.h"
#include "kernels/cuda/span/warpgroup_machine.cuh"

namespace longview::kernels::cuda {
namespace {

template <int kD, Element kElement>
using Program = SpanWarpgroup<WarpgroupMachine, kD, kElement>;

template <int kD, Element kElement>
__global__ void __launch_bounds__(kWarpgroupThreads, WarpgroupShared<kD>::kBlocks)
    SpanWarpgroupKernel(const __grid_constant__ PlanView plan,
                        const __grid_constant__ SpanCall call,
                        const __grid_constant__ TensorMaps maps) {
  extern __shared__ __align__(1024) unsigned char panels[];
  if (static_cast<int32_t>(blockIdx.x) >= plan.counts->items) return;
  const Item item = plan.items[blockIdx.x];
  WarpgroupMachine machine(panels, WarpgroupShared<kD>::kBarriersAt, maps);
  typename Program<kD, kElement>::Lanes lanes;
  Program<kD, kElement>(machine, plan, call, maps.of, item).Run(lanes);
}

// Returns `f(kernel, its shared bytes)`.
template <class F>
Status WithKernel(Element element, int padded_dim, F&& f) {
  const auto with_dim = [&]<Element kElement>(ElementType<kElement>) -> Status {
    if (padded_dim == 64) {
      return f(SpanWarpgroupKernel<64, kElement>, WarpgroupShared<64>::kBytes);
    }
    return f(SpanWarpgroupKernel<128, kElement>, WarpgroupShared<128>::kBytes);
  };
  if (element == Element::kBFloat16) return with_dim(ElementType<Element::kBFloat16>());
  return with_dim(ElementType<Element::kFloat16>());
}

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// The driver's function, asked of the runtime: nothing of the driver is linked. Null: it has none.
EncodeTiled FindEncode() {
  static const EncodeTiled encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                               12000, cudaEnableDefault, &result);
    if (error == cudaSuccess && result == cudaDriverEntryPointSuccess) {
      return reinterpret_cast<EncodeTiled>(found);
    }
    cudaGetLastError();  // Else the next launch would report it.
    return EncodeTiled{};
  }();
  return encode;
}

bool Encode(const TensorBox& box, CUtensorMap* map) {
  const EncodeTiled encode = FindEncode();
  if (encode == nullptr) return false;
  // INT32_MAX rows, all that coordinates can name: boxes hold rows that exist.
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(box.columns),
                              static_cast<cuuint64_t>(box.heads), INT32_MAX};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(box.head_stride),
                                static_cast<cuuint64_t>(box.row_stride)};
  const cuuint32_t extents[] = {kPanelColumns, 1, kBlockSlots};
  const cuuint32_t steps[] = {1, 1, 1};
  // The element's bits are copied, whatever they mean; zeros are zeros.
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, const_cast<void*>(box.data), sizes, strides,
                extents, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Sources that the driver refuses come piece by piece.
TensorMaps MapsOf(const SpanCall& call) {
  const CallBoxes boxes = BoxesOf(call);
  TensorMaps maps{};
  maps.of = boxes.of;
  bool encoded[kMaxTensorBoxes] = {};
  for (int i = 0; i < boxes.used; ++i) encoded[i] = Encode(boxes.boxes[i], &maps.maps[i]);
  for (int s = 0; s < call.sources_used; ++s) {
    if (maps.of.k[s] >= 0 && !encoded[maps.of.k[s]]) maps.of.k[s] = -1;
    if (maps.of.v[s] >= 0 && !encoded[maps.of.v[s]]) maps.of.v[s] = -1;
  }
  return maps;
}

}  // namespace

bool HasWarpgroups() {
  cudaFuncAttributes attributes;
  const bool has = cudaFuncGetAttributes(
                       &attributes, SpanWarpgroupKernel<64, Element::kBFloat16>) == cudaSuccess;
  if (!has) cudaGetLastError();  // Else the next launch would report it.
  return has;
}

Status PrepareWarpgroups() {
  if (!HasWarpgroups()) return 0;
  for (const Element element : {Element::kBFloat16, Element::kFloat16}) {
    for (const int padded_dim : {64, 128}) {
      const Status status = WithKernel(element, padded_dim, [](auto* kernel, int bytes) {
        return ToStatus(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
      });
      if (status != 0) return status;
    }
  }
  return 0;
}

Status LaunchWarpgroups(Stream* stream, const PlanView& plan, const SpanCall& call,
                        const SpanLaunch& launch) {
  const TensorMaps maps = MapsOf(call);
  return WithKernel(call.element, launch.padded_dim, [&](auto* kernel, int) {
    kernel<<<launch.items, kWarpgroupThreads, launch.shared_bytes, stream->stream>>>(plan, call,
                                                                                     maps);
    return LaunchStatus();
  });
}

}  // namespace longview::kernels::cuda
