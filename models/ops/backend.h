// Backends run forwards: memory for their rows, lists for their plans, and operations on them.
//
//   host_backend     on LibTorch's threads, fused panel by panel
//   device_backend   as work for a device's stream
//
// An operation is a value: a struct of its arguments (ops/*.h, and with their families those that
// one family has) that says its work and runs on either backend. A backend without memory counts:
// the same functions add up what they take of scratch, and do no more. Cost, workspace and Estimate
// come from there; handles without values are enough, so a model can be counted before it is
// loaded.
//
// A forward makes the same calls in the same order on all of them: it stages its plans and lists,
// takes its buffers, then computes layer by layer. A row's bits never depend on the batch.
//
// Rows of RowType::kCompute are "T". Residual streams are fp32. One thread uses an instance.
// Operations throw what LibTorch throws, and DeviceError.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/executor.h"
#include "models/cost/work.h"
#include "models/dense/compute.h"
#include "models/dense/scratch.h"
#include "models/device/staged_lists.h"
#include "models/layers/block_tail.h"
#include "models/ops/rows.h"
#include "models/ops/weight.h"

namespace longview::models {

// A staged plan of attention. Borrows the plan, which lives as long as the forward uses it.
struct PlanRef {
  const kernels::Plan* plan = nullptr;
  int staged = -1;  // Its number among the plans that a device was given.
  // Whether its rows decode, one of a sequence: a device has a kernel for them that is bound by
  // reading keys. Such a plan is cut for it (kernels/cuda/span/decode_plan.h).
  bool decodes = false;
};

// A staged list of row numbers or ids, in the memory that the backend reads.
struct IndexRef {
  const int32_t* data = nullptr;
  int64_t count = 0;
};

// Multiply-adds of one operation and the elements that it treats.
struct OpWork {
  double linear = 0;
  double attention = 0;
  double rows = 0;
  int64_t panel_columns = 0;  // The widest results alive at once of linears over many rows.
};

// Bytes, exact.
struct ForwardNeed {
  size_t lists = 0;       // Staged.
  size_t most_lists = 0;  // `lists` for sequences of these lengths whatever is masked.
  size_t buffers = 0;     // Taken.
  size_t scratch = 0;     // The most any operation uses; operations share it.
  size_t transient = 0;   // Results of the library, of the operation that has most alive.
  bool panels = false;    // Whether any linear takes many rows.

  size_t memory() const { return buffers + scratch; }
};

class HostBackend;
class DeviceBackend;

// Made as a HostBackend or a DeviceBackend.
class Backend {
 public:
  // A linear reads rows past the end of its input, up to a whole panel of them; a device writes
  // as many past the end of its output.
  enum class Tail { kNone, kPanel, kWritten };

  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  Compute compute() const { return facts_.compute; }
  int tile_rows() const { return facts_.tile_rows; }
  // The stored type of a cache's blocks on the host.
  kernels::DType block_type() const { return facts_.blocks; }
  bool on_device() const { return device_ != nullptr; }
  DeviceBackend* device() const { return device_; }  // Null on the host.
  bool counts() const { return counts_; }

  // ---- Lists, before the first operation and again after sequences left; borrowed ----
  PlanRef Stage(const kernels::Plan& plan);
  IndexRef Stage(std::span<const int32_t> values) {
    return {List(values), static_cast<int64_t>(values.size())};
  }
  // A list of any plain type: the values themselves, or a device's copy of them.
  template <typename T>
  const T* List(std::span<const T> values) {
    return lists_ == nullptr ? values.data() : lists_->Add(values);
  }
  template <typename T>
  const T* List(const std::vector<T>& values) {
    return List(std::span<const T>(values));
  }
  // A device's list of `count` values, which write(T*) writes where there is memory for them.
  template <typename T, typename Write>
  const T* ListWritten(int64_t count, Write&& write) {
    const auto bytes = static_cast<size_t>(count) * sizeof(T);
    return reinterpret_cast<const T*>(
        lists_->AddBytes(bytes, [&](std::byte* to) { write(reinterpret_cast<T*>(to)); }));
  }

  // ---- Memory of the forward, uninitialised ----
  Rows Take(int64_t count, int64_t width, RowType type, Tail tail = Tail::kNone);
  // Take in other memory, which is only carved: none for no rows, and tails need ClearTail.
  Rows CarveRows(int64_t count, int64_t width, RowType type, Tail tail, Carver& carver) const;
  // Zeros behind rows that linears read, where what lies there slows products down.
  void ClearTail(const Rows& rows) const;
  // Rows that linears read of the residual stream x: x itself where that is possible.
  Rows TakeInput(const Rows& x, NormPlace norms);
  // The place of the rows that ops::Keep leaves of x. A device, which still reads other rows of x,
  // may use `spare` for it, which is not read any more then.
  Rows TakeKept(const Rows& x, int64_t count, const Rows& spare = {});

  // fp32 rows of results that the forward writes before its last layer. On the host they are beside
  // need().
  Rows TakeResults(int64_t floats);

  // ---- Work ----
  template <typename Op>
  void Run(const Op& op) {
    if (counts_) AddWork(op.Work());
    if (device_ != nullptr) {
      op.OnDevice(*device_);
    } else {
      op.OnHost(*host_);
    }
  }
  // For operations, which take their scratch first: whether they run, or are counted by that.
  bool Runs(const Carver& scratch = Carver(nullptr)) {
    if (!counts_) return true;
    need_.scratch = std::max(need_.scratch, scratch.used());
    return false;
  }

  // The sums of a backend that counts.
  ForwardNeed need() const;
  const EncoderWork& work() const { return work_; }

 protected:
  struct Facts {
    Compute compute = Compute::kFp32;
    int tile_rows = 0;          // Queries of a tile of attention.
    int64_t panel_tail = 0;     // Rows that a panel may reach past the end.
    bool zeroes_tails = false;  // Whether what lies there slows products down.
    kernels::DType blocks = kernels::DType::kFloat32;
  };

  Backend(const Facts& facts, HostBackend* host, std::byte* memory)
      : facts_(facts), counts_(memory == nullptr), host_(host), carver_(memory) {}
  // `lists` outlives it.
  Backend(const Facts& facts, DeviceBackend* device, bool counts, StagedLists* lists)
      : facts_(facts), counts_(counts), device_(device), carver_(nullptr), lists_(lists) {}
  ~Backend() = default;

  void set_memory(std::byte* memory) { carver_ = Carver(memory); }
  StagedLists* staged() const { return lists_; }
  void set_staged(StagedLists* lists) { lists_ = lists; }
  ForwardNeed& counted() { return need_; }

 private:
  // Rows behind the end.
  int64_t TailRows(Tail tail) const;
  void AddWork(const OpWork& work);

  const Facts facts_;
  const bool counts_;
  HostBackend* const host_ = nullptr;
  DeviceBackend* const device_ = nullptr;
  Carver carver_;
  StagedLists* lists_ = nullptr;  // Null on the host.
  ForwardNeed need_;
  EncoderWork work_;
};

}  // namespace longview::models
