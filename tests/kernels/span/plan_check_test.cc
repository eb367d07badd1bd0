// Contracts of RunPlan: a call that does not fit its plan aborts with the reason.
#include "kernels/span/executor.h"

#include <gtest/gtest.h>

#include "kernels/span/full_planner.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels {
namespace {

using testing::Tensor;

class PlanCheckTest : public ::testing::Test {
 protected:
  PlanCheckTest() : q_(4, 2, 8), kv_(70, 2, 8), out_(4, 2, 8) {
    const FullSequence sequence{0, 4, 0, 70, {}, 0, 0};
    FullPattern pattern;
    pattern.heads = 2;
    plan_ = PlanFull(pattern, std::span(&sequence, 1));
    call_ = testing::MakeCall(q_, &out_, 1.0f);
    source_ = testing::RowsSource(kv_, kv_);
    call_.sources = std::span(&source_, 1);
  }

  void Check() { CheckPlan(plan_, call_, Isa::kAvx2); }

  Tensor q_, kv_, out_;
  Plan plan_;
  Call call_;
  Source source_;
};

using PlanCheckDeathTest = PlanCheckTest;

TEST_F(PlanCheckTest, AcceptsAFittingCall) { Check(); }

TEST_F(PlanCheckDeathTest, HeadWidths) {
  call_.Dk = kMaxHeadDim + 1;
  EXPECT_DEATH(Check(), "call.Dk");
  call_.Dk = 8;
  call_.Dv = 0;
  EXPECT_DEATH(Check(), "call.Dv");
}

TEST_F(PlanCheckDeathTest, HeadsAndGroups) {
  call_.kv_group = 3;
  EXPECT_DEATH(Check(), "kv_group");
  call_.kv_group = 1;
  call_.H = 1;
  EXPECT_DEATH(Check(), "call.H");
}

TEST_F(PlanCheckDeathTest, Sources) {
  call_.sources = {};
  EXPECT_DEATH(Check(), "sources");
  call_.sources = std::span(&source_, 1);
  source_.k = nullptr;
  EXPECT_DEATH(Check(), "source.k");
}

TEST_F(PlanCheckDeathTest, PanelsOfAnotherVariant) {
  source_.layout = Layout::kPanels;
  source_.kv_heads = 2;
  Check();
  source_.dtype = DType::kBFloat16;
  EXPECT_DEATH(Check(), "PanelDType");
}

TEST_F(PlanCheckDeathTest, SpansOutsideTheSource) {
  plan_.spans.back().keys += 64;
  EXPECT_DEATH(Check(), "map.slots");
}

TEST_F(PlanCheckDeathTest, MissingTables) {
  plan_.biases.push_back({kAdded, 0, 0, 1, 1, 0, 1});
  plan_.spans[0].bias = 0;
  EXPECT_DEATH(Check(), "call.tables");
}

}  // namespace
}  // namespace longview::kernels
