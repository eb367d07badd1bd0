#include "tests/kernels/support/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

namespace longview::kernels::testing {
namespace {

constexpr std::byte kCanary{0xA5};
constexpr size_t kCanaryBytes = 64;

// A 64-byte aligned block of `bytes` with a canary behind it. The size is rounded down to
// what was asked: the canary starts at the first byte a kernel must not touch.
class GuardedBlock {
 public:
  explicit GuardedBlock(size_t bytes) : bytes_(bytes) {
    const size_t total = AlignUp(bytes + kCanaryBytes);
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, total)));
    std::memset(data_.get(), static_cast<int>(kCanary), total);
  }
  std::byte* get() const { return data_.get(); }
  bool Intact() const {
    return std::all_of(data_.get() + bytes_, data_.get() + bytes_ + kCanaryBytes,
                       [](std::byte b) { return b == kCanary; });
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace

void Threads::Run(ThreadBody body, void* context) const {
  std::vector<std::thread> workers;
  for (int t = 1; t < threads_; ++t) workers.emplace_back(body, context, t);
  body(context, 0);
  for (std::thread& worker : workers) worker.join();
}

void RunChecked(const Plan& plan, const Call& call, Isa isa, int threads) {
  RunCheckedWith(*FindTileKernel(EffectiveIsa(isa, call.dtype)), plan, call, threads);
}

void RunCheckedWith(const TileKernel& kernel, const Plan& plan, const Call& call, int threads) {
  const WorkspaceBytes bytes = MeasureWith(kernel, plan, call);
  // Scratch blocks lie in one allocation at a stride that leaves room for a canary each.
  const size_t stride = AlignUp(bytes.per_thread + kCanaryBytes);
  const GuardedBlock shared(bytes.shared);
  const GuardedBlock scratch(stride * threads);
  const Workspace workspace{shared.get(), scratch.get(), stride};
  RunPlanWith(kernel, plan, call, workspace, Threads(threads));
  EXPECT_TRUE(shared.Intact()) << "shared workspace overrun, " << bytes.shared << " bytes";
  for (int t = 0; t < threads; ++t) {
    const std::byte* begin = scratch.get() + t * stride + bytes.per_thread;
    EXPECT_TRUE(std::all_of(begin, begin + (stride - bytes.per_thread),
                            [](std::byte b) { return b == kCanary; }))
        << "thread " << t << " wrote behind its " << bytes.per_thread << " bytes";
  }
}

namespace {

constexpr Isa kAllIsas[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16,
                            Isa::kAmxBf16};

void PrintVariants(DType dtype) {
  std::ostringstream line;
  line << "[ variants ] " << (dtype == DType::kFloat32 ? "fp32" : "bf16") << " calls:";
  for (const Isa isa : kAllIsas) {
    line << ' ' << IsaName(isa);
    if (EffectiveIsa(isa, dtype) == isa) continue;
    const bool narrow = PanelDType(isa) == DType::kBFloat16 && dtype == DType::kFloat32;
    line << (narrow               ? " (skipped: bf16 calls only)"
             : !IsaSupported(isa) ? " (skipped: this CPU cannot run it)"
                                  : " (skipped: not built)");
  }
  std::puts(line.str().c_str());
}

}  // namespace

std::vector<Isa> IsasToTest(DType dtype) {
  static std::set<DType> printed;
  if (printed.insert(dtype).second) PrintVariants(dtype);
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas) {
    if (EffectiveIsa(isa, dtype) == isa) isas.push_back(isa);
  }
  return isas;
}

double Tolerance(Isa isa, DType dtype) {
  if (dtype == DType::kFloat32) return isa == Isa::kScalar ? 2e-6 : 2e-5;
  return isa >= Isa::kAvx512Bf16 ? 4e-2 : 2e-2;
}

}  // namespace longview::kernels::testing
