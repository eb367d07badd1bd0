// The machine of span_warpgroup.h on a GPU of compute capability 9.0: four warps multiply by wgmma,
// a fifth loads by TMA and cp.async.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/span/device_machine.cuh"
#include "kernels/cuda/span/tensor_box.h"
#include "kernels/cuda/span/tile_lane.h"
#include "kernels/cuda/span/wgmma.cuh"

namespace longview::kernels::cuda {

// The boxes of a call as the hardware takes them. A kernel's parameter: maps may lie in no memory
// that kernels write.
struct TensorMaps {
  CUtensorMap maps[kMaxTensorBoxes];
  SourceBoxes of;
};

// The shared memory of both roles.
class WarpgroupShare {
 public:
  __device__ WarpgroupShare(uint32_t shared, uint32_t barriers)
      : shared_(shared), barriers_(barriers) {}

  __device__ void Await(int barrier, uint32_t parity) const {
    AwaitBarrier(BarrierAt(barrier), parity);
    __syncwarp();  // The following code is for whole warps.
  }

 protected:
  __device__ uint32_t BarrierAt(int barrier) const { return barriers_ + barrier * 8; }

  uint32_t shared_;
  uint32_t barriers_;
};

class DeviceLoader : public WarpgroupShare {
 public:
  __device__ DeviceLoader(const WarpgroupShare& share, const TensorMaps& maps)
      : WarpgroupShare(share), maps_(maps) {}

  template <class F>
  __device__ void Each(F&& body) const {
    body(Lane());
  }
  template <class Test>
  __device__ bool Every(Test&& test) const {
    return __all_sync(0xffffffffu, test(Lane())) != 0;
  }

  __device__ void CopyBox(int to, int box, int column, int head, int row, int barrier) const {
    if (Lane() != 0) return;
    CopyTensorBox(shared_ + to, &maps_.maps[box], column, head, row, BarrierAt(barrier));
  }
  __device__ void CopyPiece(int to, const void* from, int bytes) const {
    CopyPieceAsync(shared_ + to, from, bytes);
  }
  __device__ void StoreElement(int to, uint16_t value) const {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(shared_ + to), "h"(value) : "memory");
  }

  // The bytes are expected before the first box is asked for.
  __device__ void ArriveWithBoxes(int barrier, int bytes) const {
    if (Lane() == 0) {
      ArriveExpecting(BarrierAt(barrier), bytes);
    } else {
      Arrive(BarrierAt(barrier));
    }
  }
  __device__ void ArriveWithPieces(int barrier) const { ArriveAfterCopies(BarrierAt(barrier)); }
  __device__ void AwaitPieces() const { asm volatile("cp.async.wait_all;" ::: "memory"); }
  __device__ void ArriveWithStores(int barrier) const {
    FenceProxies();
    Arrive(BarrierAt(barrier));
  }

 private:
  __device__ static int Lane() { return static_cast<int>(threadIdx.x % 32); }

  const TensorMaps& maps_;
};

class DeviceGroup : public WarpgroupShare {
 public:
  __device__ explicit DeviceGroup(const WarpgroupShare& share) : WarpgroupShare(share) {}

  template <class T, class F>
  __device__ void EachWarp(OneLane<T>& lanes, F&& body) const {
    DeviceWarp warp;
    body(warp, lanes);
  }

  // Pieces and stores wrote as threads do, products read as copies do.
  __device__ void AcquireShared() const { FenceProxies(); }

  template <class T, class Sum, class Left>
  __device__ void BeginProducts(OneLane<T>& lanes, Sum&& sum, Left&& left) const {
    PinAll(sum(lanes.value));
    PinAll(left(lanes.value));
    FenceProducts();
  }
  template <Element kElement, int kColumns, bool kTransposed, class T, class Sum, class Left>
  __device__ void Multiply(OneLane<T>& lanes, Sum&& sum, Left&& left, uint64_t right,
                           bool add) const {
    float(&c)[kColumns / 8][4] = sum(lanes.value);
    Wgmma<kElement, kTransposed>(c, left(lanes.value), right, add);
  }
  template <class T, class Sum>
  __device__ void EndProducts(OneLane<T>& lanes, Sum&& sum) const {
    AwaitProducts();
    PinAll(sum(lanes.value));
  }

  __device__ void Release(int barrier) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) Arrive(BarrierAt(barrier));
  }

 private:
  template <class T, int kRows, int kColumns>
  __device__ static void PinAll(T (&values)[kRows][kColumns]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) Pin(values[i][j]);
    }
  }
};

class WarpgroupMachine {
 public:
  template <class T>
  using Lanes = OneLane<T>;

  // `barriers_at`: bytes from the beginning of shared memory, a multiple of 1024.
  __device__ WarpgroupMachine(void* shared, int barriers_at, const TensorMaps& maps)
      : shared_(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
        barriers_(shared_ + barriers_at),
        maps_(maps) {
    if (shared_ % 1024 != 0) __trap();  // Swizzles are made of address bits.
  }

  __device__ uint32_t Address(int offset) const { return shared_ + offset; }

  template <class F>
  __device__ void InitBarriers(F&& body) const {
    if (threadIdx.x == 0) {
      body([this](int barrier, int arrivals) { InitBarrier(barriers_ + barrier * 8, arrivals); });
      FenceBarriers();
      FenceProxies();
    }
    __syncthreads();
  }

  template <class Load, class Attend>
  __device__ void Split(Load&& load, Attend&& attend) const {
    const WarpgroupShare share(shared_, barriers_);
    if (threadIdx.x >= kTileThreads) {
      DeviceLoader loader(share, maps_);
      load(loader);
    } else {
      DeviceGroup group(share);
      attend(group);
    }
  }

  static __device__ float Exp2(float x) { return DeviceMachine::Exp2(x); }

  template <Element kElement>
  static __device__ uint32_t Pack(float low, float high) {
    return DeviceMachine::Pack<kElement>(low, high);
  }

 private:
  uint32_t shared_;
  uint32_t barriers_;
  const TensorMaps& maps_;
};

}  // namespace longview::kernels::cuda
