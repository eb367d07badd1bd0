// The machine of span_tile.h on a GPU of compute capability 8.0 or newer: every thread runs its own
// share, fragments are registers, copies are cp.async.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "kernels/cuda/base/element.h"

namespace longview::kernels::cuda {

// This thread's share of what all lanes hold; the index is for machines that run them all.
template <class T>
struct OneLane {
  T value;
  __device__ T& operator[](int) { return value; }
};

class DeviceWarp {
 public:
  __device__ int index() const { return threadIdx.x / 32; }

  template <class F>
  __device__ void Each(F&& body) {
    body(static_cast<int>(threadIdx.x % 32));
  }

  __device__ void Sync() { __syncwarp(); }

  // Four 8x8 matrices of 16-bit elements into value.b; lane 8 * i + r names row r of matrix i.
  template <bool kTransposed, class T, class Address>
  __device__ void LoadMatrices(OneLane<T>& lane, Address&& address) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(address(threadIdx.x % 32)));
    uint32_t* b = lane.value.b;
    if constexpr (kTransposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(from)
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(from)
                   : "memory");
    }
  }

  // sum += left * (b[first], b[first + 1]), 16 x 8 x 16.
  template <Element kElement, class T, class Sum, class Left>
  __device__ void Multiply(OneLane<T>& lane, Sum&& sum, Left&& left, int first) {
    float(&c)[4] = sum(lane.value);
    uint32_t(&a)[4] = left(lane.value);
    const uint32_t* b = lane.value.b + first;
    if constexpr (kElement == Element::kBFloat16) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    } else {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }

  // Reduces over the four lanes that share two rows: the same result in all four.
  template <class T, class Pair>
  __device__ void QuadMax(OneLane<T>& lane, Pair&& pair) {
    float(&x)[2] = pair(lane.value);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      x[i] = fmaxf(x[i], __shfl_xor_sync(0xffffffffu, x[i], 1));
      x[i] = fmaxf(x[i], __shfl_xor_sync(0xffffffffu, x[i], 2));
    }
  }
  template <class T, class Pair>
  __device__ void QuadSum(OneLane<T>& lane, Pair&& pair) {
    float(&x)[2] = pair(lane.value);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      x[i] += __shfl_xor_sync(0xffffffffu, x[i], 1);
      x[i] += __shfl_xor_sync(0xffffffffu, x[i], 2);
    }
  }

  // Over runs of kGroup lanes; the same bits in all of them.
  template <int kGroup, class T, class Value>
  __device__ void SumGroups(OneLane<T>& lane, Value&& value) {
    float& x = value(lane.value);
#pragma unroll
    for (int distance = kGroup / 2; distance > 0; distance /= 2) {
      x += __shfl_xor_sync(0xffffffffu, x, distance);
    }
  }

  template <int kGroup, class T, class Value>
  __device__ void MaxGroups(OneLane<T>& lane, Value&& value) {
    float& x = value(lane.value);
#pragma unroll
    for (int distance = kGroup / 2; distance > 0; distance /= 2) {
      x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
    }
  }

  template <class T, class Test>
  __device__ bool Any(OneLane<T>& lane, Test&& test) {
    return __any_sync(0xffffffffu, test(lane.value)) != 0;
  }
  template <class T, class Test>
  __device__ bool All(OneLane<T>& lane, Test&& test) {
    return __all_sync(0xffffffffu, test(lane.value)) != 0;
  }
};

class DeviceMachine {
 public:
  template <class T>
  using Lanes = OneLane<T>;

  __device__ explicit DeviceMachine(uint16_t* shared) : shared_(shared) {}

  __device__ uint16_t* shared() const { return shared_; }

  template <class F>
  __device__ void EachThread(F&& body) {
    body(static_cast<int>(threadIdx.x));
  }
  template <class T, class F>
  __device__ void EachWarp(OneLane<T>& lanes, F&& body) {
    DeviceWarp warp;
    body(warp, lanes);
  }

  __device__ void CopyPiece(void* to, const void* from, int bytes) {
    __pipeline_memcpy_async(to, from, 16, 16 - bytes);
  }
  __device__ void EndCopies() { __pipeline_commit(); }
  template <int kLeft>
  __device__ void AwaitCopies() {
    __pipeline_wait_prior(kLeft);
  }
  __device__ void Sync() { __syncthreads(); }

  // 16 bytes of global memory that no kernel writes meanwhile.
  static __device__ void Read16(const void* from, uint32_t* to) {
    const uint4 words = __ldg(static_cast<const uint4*>(from));
    to[0] = words.x;
    to[1] = words.y;
    to[2] = words.z;
    to[3] = words.w;
  }

  // Four floats of shared memory, 16-byte aligned.
  static __device__ void ReadShared(const float* from, float* to) {
    const float4 values = *reinterpret_cast<const float4*>(from);
    to[0] = values.x;
    to[1] = values.y;
    to[2] = values.z;
    to[3] = values.w;
  }

  static __device__ float Exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }

  // Two floats as 16-bit elements, `low` in the lower half.
  template <Element kElement>
  static __device__ uint32_t Pack(float low, float high) {
    uint32_t bits;
    if constexpr (kElement == Element::kBFloat16) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
      memcpy(&bits, &pair, sizeof(bits));
    } else {
      const __half2 pair = __floats2half2_rn(low, high);
      memcpy(&bits, &pair, sizeof(bits));
    }
    return bits;
  }

  // The two floats of a pair.
  template <Element kElement>
  static __device__ void Unpack(uint32_t bits, float* to) {
    float2 values;
    if constexpr (kElement == Element::kBFloat16) {
      __nv_bfloat162 pair;
      memcpy(&pair, &bits, sizeof(bits));
      values = __bfloat1622float2(pair);
    } else {
      __half2 pair;
      memcpy(&pair, &bits, sizeof(bits));
      values = __half22float2(pair);
    }
    to[0] = values.x;
    to[1] = values.y;
  }

 private:
  uint16_t* shared_;
};

}  // namespace longview::kernels::cuda
