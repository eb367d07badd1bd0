// Luna's encoders with their layers on a device, against every golden case.
#include <gtest/gtest.h>

#include "models/luna/device_model.h"
#include "tests/models/encoder/device_frame.h"
#include "tests/models/encoder/edge_frame.h"
#include "tests/models/luna/encoder_case.h"

namespace longview::models {
namespace {

class DeviceLunaTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceLunaTest, LogitsAloneAndTogether) {
  const LunaEncoderCase golden(GetParam());
  ExpectGoldenOnDevices({GetParam(), golden.golden().directory(), BuildDeviceLuna,
                         golden.Requests(),
                         [&](const std::vector<Answer>& answers) { return golden.Error(answers); },
                         golden.golden().tolerance("logits"), 0.5});
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceLunaTest, ::testing::ValuesIn(LunaEncoderCase::Names()),
                         [](const auto& info) { return info.param; });

// Documents of a model, one as long as it takes, one with some tokens masked, one of few tokens.
std::vector<Request> Documents(const GoldenCase& golden) {
  const auto model = golden.Load("fp32");
  const int most = model->info().max_tokens;
  std::vector<Request> requests;
  for (const int tokens : {most, 3, most, most / 2}) {
    TokenInput ids = RandomIds(tokens, static_cast<uint32_t>(requests.size()), 4, 12);
    ids.attention_mask.assign(ids.ids.size(), 1);
    for (size_t t = 1; requests.size() > 1 && t < ids.ids.size(); t += 2) ids.attention_mask[t] = 0;
    requests.push_back(TokenRequest(Task::kEmbedding, std::move(ids), {"last_hidden_state"}));
  }
  return requests;
}

TEST(DeviceLunaMemoryTest, AdmissionIsExact) {
  for (const std::string name : {"lra_use_p", "mlm_untied_lm_untied", "seqcls_attention"}) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "luna");
    ExpectAdmittedExactly(golden.directory(), BuildDeviceLuna, Documents(golden));
  }
}

TEST(DeviceLunaMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase golden("lra_mean_ragged", "luna");
  ExpectDropsChangeNothing(golden.directory(), BuildDeviceLuna, Documents(golden));
}

}  // namespace
}  // namespace longview::models
