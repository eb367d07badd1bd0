// The recorded outputs of allenai's Longformer kernel definition: q, k, v in, context out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "kernels/span/band_planner.h"
#include "models/checkpoint/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tests/kernels/cuda/support/device_check.h"
#include "tests/kernels/support/run.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels {
namespace {

std::string CaseDirectory() {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return std::string(root != nullptr ? root : LONGVIEW_GOLDEN_DIR) + "/longformer/attention_kernel";
}

testing::Tensor Load(const models::Checkpoint& file, const std::string& name) {
  const models::TensorView* view = file.Find(name);
  EXPECT_NE(view, nullptr) << name;
  testing::Tensor tensor(view->shape[0], view->shape[1], view->shape[2]);
  std::memcpy(tensor.data(), view->data, view->bytes);
  return tensor;
}

// Checks a band on a device's kernels.
void CheckOnDevice(BandPattern pattern, const BandSequence& sequence, const testing::Tensor& q,
                   const testing::Tensor& k, const testing::Tensor& v,
                   const testing::Tensor& want) {
  pattern.tile_rows = kMaxTileRows;
  const Plan plan = PlanBand(pattern, std::span(&sequence, 1));
  testing::Tensor out(q.rows(), q.heads(), v.dim());
  Call call = testing::MakeCall(q, &out, 1.0f);
  const std::vector<Source> sources(plan.sources.size(), testing::RowsSource(k, v));
  call.sources = sources;
  std::vector<int> rows;
  std::vector<std::vector<double>> wanted;
  for (int row = 0; row < q.rows(); ++row) {
    rows.push_back(row);
    for (int h = 0; h < q.heads(); ++h) {
      wanted.emplace_back();
      for (int d = 0; d < v.dim(); ++d) wanted.back().push_back(want.At(row, h, d));
    }
  }
  cuda::testing::CheckOnDevice(plan, call, q.rows(), rows, wanted);
}

TEST(GoldenBandTest, EqualsTheRecordedKernel) {
  std::ifstream stream(CaseDirectory() + "/case.json");
  const nlohmann::json spec = nlohmann::json::parse(stream);
  const auto inputs = models::Checkpoint::Open(CaseDirectory() + "/inputs.safetensors");
  const auto expected = models::Checkpoint::Open(CaseDirectory() + "/expected.safetensors");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  const double tolerance = spec["tolerance"]["hidden"];
  ASSERT_FALSE(spec["items"].empty());
  for (size_t i = 0; i < spec["items"].size(); ++i) {
    const nlohmann::json& item = spec["items"][i];
    const testing::Tensor q = Load(*inputs, "q." + std::to_string(i));
    const testing::Tensor k = Load(*inputs, "k." + std::to_string(i));
    const testing::Tensor v = Load(*inputs, "v." + std::to_string(i));
    const testing::Tensor want = Load(*expected, "out." + std::to_string(i));
    BandPattern pattern;
    pattern.heads = item["heads"];
    pattern.window_left = item["w_one_sided"];
    pattern.window_right = item["causal"] ? 0 : pattern.window_left;
    if (item["dilation"].is_array()) {
      pattern.dilation = item["dilation"].get<std::vector<int32_t>>();
    } else {
      pattern.dilation.assign(pattern.heads, item["dilation"].get<int32_t>());
    }
    BandSequence sequence;
    sequence.tokens = item["n"];
    for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
      pattern.tile_rows = TileRows(isa);
      const Plan plan = PlanBand(pattern, std::span(&sequence, 1));
      testing::Tensor out(q.rows(), q.heads(), v.dim());
      Call call = testing::MakeCall(q, &out, 1.0f);
      const std::vector<Source> sources(plan.sources.size(), testing::RowsSource(k, v));
      call.sources = sources;
      testing::RunChecked(plan, call, isa);
      double worst = 0.0;
      for (size_t e = 0; e < want.elements(); ++e) {
        worst = std::max(worst, std::abs(double{out.Get(e)} - want.Get(e)));
      }
      EXPECT_LE(worst, tolerance) << "item " << i << " " << IsaName(isa);
    }
    CheckOnDevice(pattern, sequence, q, k, v, want);
  }
}

}  // namespace
}  // namespace longview::kernels
