// Plans that no planner would write, decided by the input: the check accepts them, and every
// kernel of this CPU computes what the reference does without leaving its memory.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/base/workspace.h"
#include "kernels/span/executor.h"
#include "tests/fuzz/fuzz.h"
#include "tests/kernels/support/random_plan.h"

namespace longview::kernels {
namespace {

using testing::RandomCase;
using testing::Tensor;

// The calling thread alone.
class OneThread final : public ParallelFor {
 public:
  int threads() const override { return 1; }
  void Run(ThreadBody body, void* context) const override { body(context, 0); }
};

struct Free {
  void operator()(std::byte* block) const { std::free(block); }
};
using Block = std::unique_ptr<std::byte, Free>;

// Separate allocations of the measured size: AddressSanitizer guards their ends.
Block Allocate(size_t bytes) {
  return Block(static_cast<std::byte*>(std::aligned_alloc(kAlignment, AlignUp(bytes + 1))));
}

std::vector<float> RunOn(RandomCase& random, DType dtype, Isa isa) {
  Tensor out(random.rows(), random.heads(), random.Dv(), dtype);
  const Call call = random.CallFor(PanelDType(isa), &out);
  CheckPlan(random.plan(), call, isa);
  const WorkspaceBytes bytes = Measure(random.plan(), call, isa);
  const Block shared = Allocate(bytes.shared), scratch = Allocate(bytes.per_thread);
  const Workspace workspace{shared.get(), scratch.get(), AlignUp(bytes.per_thread)};
  RunPlan(random.plan(), call, workspace, OneThread(), isa);
  std::vector<float> values;
  for (size_t i = 0; i < out.elements(); ++i) values.push_back(out.Get(i));
  return values;
}

}  // namespace
}  // namespace longview::kernels

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview::kernels;
  const auto [kind, choices] = longview::fuzz::SplitKind(longview::fuzz::AsText(data, size));
  const DType dtype = kind % 2 == 0 ? DType::kFloat32 : DType::kBFloat16;
  const auto* bytes = reinterpret_cast<const uint8_t*>(choices.data());
  RandomCase random(longview::kernels::testing::Choices(std::span(bytes, choices.size())), dtype);
  const std::vector<float> want = RunOn(random, dtype, Isa::kScalar);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmxBf16}) {
    if (EffectiveIsa(isa, dtype) != isa) continue;
    const std::vector<float> got = RunOn(random, dtype, isa);
    const float tolerance = dtype == DType::kFloat32 ? 1e-4f : 5e-2f;
    for (size_t i = 0; i < want.size(); ++i) {
      FUZZ_PROMISE(std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i])));
    }
  }
  return 0;
}
