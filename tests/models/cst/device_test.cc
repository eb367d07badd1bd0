// Composite Slice encoders with their layers on a device, against every golden case.
#include <gtest/gtest.h>

#include "models/cst/device_model.h"
#include "tests/models/cst/encoder_case.h"
#include "tests/models/encoder/device_frame.h"
#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

class DeviceCstTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceCstTest, LogitsAloneAndTogether) {
  const CstEncoderCase golden(GetParam());
  const Task task = golden.golden().Load("fp32")->info().task;
  ExpectGoldenOnDevices({GetParam(), golden.golden().directory(), BuildDeviceCst,
                         golden.Requests(task),
                         [&](const std::vector<Answer>& answers) { return golden.Error(answers); },
                         golden.golden().tolerance("logits"), CstEncoderCase::Bf16Limit(task)});
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceCstTest, ::testing::ValuesIn(CstEncoderCase::Names()),
                         [](const auto& info) { return info.param; });

// Documents of a model, one as long as it takes, with masked tokens, whole masked slices and
// padding; rows of padding are wanted too.
std::vector<Request> Documents(const GoldenCase& golden) {
  const auto model = golden.Load("fp32");
  const int most = model->info().max_tokens;
  std::vector<Request> requests;
  for (const int tokens : {most, 3, most, most / 2}) {
    TokenInput ids = RandomIds(tokens, static_cast<uint32_t>(requests.size()), 1, 40);
    ids.attention_mask.assign(ids.ids.size(), 1);
    for (size_t t = 1; requests.size() > 1 && t < ids.ids.size(); ++t) {
      ids.attention_mask[t] = t % 2 == 0 && t / 8 % 3 != 1 && t + 5 < ids.ids.size();
    }
    requests.push_back(TokenRequest(Task::kEmbedding, std::move(ids), {"last_hidden_state"}));
  }
  return requests;
}

TEST(DeviceCstTestOfMasks, LastStatesAreTheCpus) {
  for (const std::string name :
       {"lra_alpha2_mask", "lra_alpha3_zero_separate", "lra_global_first", "lra_mlp",
        "lra_parallel", "lra_pool_linear", "lra_pool_max", "lra_tiled_per_layer_tables"}) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "cst");
    const std::vector<Request> requests = Documents(golden);
    const std::vector<Answer> cpu = RunBatch(*golden.Load("fp32"), requests);
    ExpectGoldenOnDevices({name, golden.directory(), BuildDeviceCst, requests,
                           [&](const std::vector<Answer>& answers) {
                             double largest = 0;
                             for (size_t i = 0; i < answers.size(); ++i) {
                               const auto want = cpu[i].tensors.at(0).floats();
                               largest = std::max(
                                   largest, LargestDifference(answers[i].tensors.at(0).floats(),
                                                              {want.begin(), want.end()}));
                             }
                             return largest;
                           },
                           1e-4, 0.3});
  }
}

TEST(DeviceCstMemoryTest, AdmissionIsExact) {
  for (const std::string name : {"lra_alpha3_zero_separate", "lra_mlp", "lra_pool_linear"}) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "cst");
    ExpectAdmittedExactly(golden.directory(), BuildDeviceCst, Documents(golden));
  }
}

TEST(DeviceCstMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase golden("lra_L8", "cst");
  ExpectDropsChangeNothing(golden.directory(), BuildDeviceCst, Documents(golden));
}

}  // namespace
}  // namespace longview::models
