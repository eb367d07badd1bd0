// Hopper's instructions as functions: products of a warpgroup, barriers with counts of bytes,
// copies by tensor map. For code compiled for sm_90a alone; what each is for, and in which order,
// is said by the PTX ISA's chapters on wgmma, mbarrier and cp.async.bulk.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/cuda/base/element.h"

namespace longview::kernels::cuda {

// ---- Products ----

#define LONGVIEW_SUMS(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])

#define LONGVIEW_WGMMA_N64(types)                                                                 \
  asm volatile(                                                                                   \
      "{.reg .pred add;\n"                                                                        \
      "setp.ne.b32 add, %37, 0;\n"                                                                \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." types                                         \
      " {"                                                                                        \
      "%0, %1, %2, %3, %4, %5, %6, %7, "                                                          \
      "%8, %9, %10, %11, %12, %13, %14, %15, "                                                    \
      "%16, %17, %18, %19, %20, %21, %22, %23, "                                                  \
      "%24, %25, %26, %27, %28, %29, %30, %31}, "                                                 \
      "{%32, %33, %34, %35}, %36, add, 1, 1, %38;}\n"                                             \
      : LONGVIEW_SUMS(0), LONGVIEW_SUMS(1), LONGVIEW_SUMS(2), LONGVIEW_SUMS(3), LONGVIEW_SUMS(4), \
        LONGVIEW_SUMS(5), LONGVIEW_SUMS(6), LONGVIEW_SUMS(7)                                      \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right), "r"(static_cast<int32_t>(add)),   \
        "n"(kTransposed ? 1 : 0))

#define LONGVIEW_WGMMA_N128(types)                                                                \
  asm volatile(                                                                                   \
      "{.reg .pred add;\n"                                                                        \
      "setp.ne.b32 add, %69, 0;\n"                                                                \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." types                                        \
      " {"                                                                                        \
      "%0, %1, %2, %3, %4, %5, %6, %7, "                                                          \
      "%8, %9, %10, %11, %12, %13, %14, %15, "                                                    \
      "%16, %17, %18, %19, %20, %21, %22, %23, "                                                  \
      "%24, %25, %26, %27, %28, %29, %30, %31, "                                                  \
      "%32, %33, %34, %35, %36, %37, %38, %39, "                                                  \
      "%40, %41, %42, %43, %44, %45, %46, %47, "                                                  \
      "%48, %49, %50, %51, %52, %53, %54, %55, "                                                  \
      "%56, %57, %58, %59, %60, %61, %62, %63}, "                                                 \
      "{%64, %65, %66, %67}, %68, add, 1, 1, %70;}\n"                                             \
      : LONGVIEW_SUMS(0), LONGVIEW_SUMS(1), LONGVIEW_SUMS(2), LONGVIEW_SUMS(3), LONGVIEW_SUMS(4), \
        LONGVIEW_SUMS(5), LONGVIEW_SUMS(6), LONGVIEW_SUMS(7), LONGVIEW_SUMS(8), LONGVIEW_SUMS(9), \
        LONGVIEW_SUMS(10), LONGVIEW_SUMS(11), LONGVIEW_SUMS(12), LONGVIEW_SUMS(13),               \
        LONGVIEW_SUMS(14), LONGVIEW_SUMS(15)                                                      \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right), "r"(static_cast<int32_t>(add)),   \
        "n"(kTransposed ? 1 : 0))

// sum += left * right, 64 x 64 x 16 of a warpgroup; without `add`, sum = left * right.
template <Element kElement, bool kTransposed>
__device__ inline void Wgmma(float (&c)[8][4], const uint32_t (&a)[4], uint64_t right, bool add) {
  if constexpr (kElement == Element::kBFloat16) {
    LONGVIEW_WGMMA_N64("bf16.bf16");
  } else {
    LONGVIEW_WGMMA_N64("f16.f16");
  }
}

// sum += left * right, 64 x 128 x 16 of a warpgroup; without `add`, sum = left * right.
template <Element kElement, bool kTransposed>
__device__ inline void Wgmma(float (&c)[16][4], const uint32_t (&a)[4], uint64_t right, bool add) {
  if constexpr (kElement == Element::kBFloat16) {
    LONGVIEW_WGMMA_N128("bf16.bf16");
  } else {
    LONGVIEW_WGMMA_N128("f16.f16");
  }
}

#undef LONGVIEW_SUMS
#undef LONGVIEW_WGMMA_N64
#undef LONGVIEW_WGMMA_N128

// Registers that threads wrote may be read, and sums written, by the products that follow.
__device__ inline void FenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Waits for all products handed over.
__device__ inline void AwaitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Keeps the compiler from moving what makes or reads a register across the products that use it:
// they work on it between two instructions that do not name it.
__device__ inline void Pin(float& value) { asm volatile("" : "+f"(value)::"memory"); }
__device__ inline void Pin(uint32_t& value) { asm volatile("" : "+r"(value)::"memory"); }

// ---- Barriers, at addresses of shared memory ----

__device__ inline void InitBarrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers known to copies by tensor map.
__device__ inline void FenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Makes the threads' writes to shared memory visible to products and copies by tensor map.
__device__ inline void FenceProxies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void Arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// The phase also waits for so many bytes of copies.
__device__ inline void ArriveExpecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Arrives when the thread's cp.async copies have come.
__device__ inline void ArriveAfterCopies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Waits until the phase of that parity is over.
__device__ inline void AwaitBarrier(uint32_t barrier, uint32_t parity) {
  uint32_t over = 0;
  while (over == 0) {
    asm volatile(
        "{.reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.b32 %0, 1, 0, over;}\n"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

// ---- Copies ----

// A box of the map's tensor to shared memory; its bytes count on the barrier.
__device__ inline void CopyTensorBox(uint32_t to, const CUtensorMap* map, int column, int head,
                                     int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(column), "r"(head), "r"(row), "r"(barrier)
      : "memory");
}

// 16 bytes to shared memory, zeros from `bytes` on.
__device__ inline void CopyPieceAsync(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

}  // namespace longview::kernels::cuda
