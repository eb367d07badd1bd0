// LED against recorded outputs of HuggingFace: encoder states and logits of given outputs, every
// form of a checkpoint, whatever pieces a document is read in.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/models/led/led_case.h"

namespace longview::models {
namespace {

class LedForward : public ::testing::TestWithParam<std::string> {};

TEST_P(LedForward, StatesAndLogits) {
  const GoldenCase golden(GetParam(), "led");
  const std::unique_ptr<Model> model = LoadLedCase(golden, "fp32");
  ASSERT_NE(model, nullptr);
  for (int item = 0; item < golden.items(); ++item) {
    SCOPED_TRACE(item);
    const std::string suffix = "." + std::to_string(item);
    const Answer answer =
        Generate(*model, Forced(golden, item, {"logits", "encoder_last_hidden_state"}));
    ASSERT_EQ(answer.tensors.size(), 2u);
    EXPECT_LE(LargestDifference(answer.tensors[0].floats(), golden.Expected("logits" + suffix)),
              golden.tolerance("logits"));
    EXPECT_LE(LargestDifference(answer.tensors[1].floats(),
                                golden.Expected("encoder_last_hidden_state" + suffix)),
              golden.tolerance("encoder_last_hidden_state"));
  }
}

TEST_P(LedForward, PiecesOfADocumentChangeNoBit) {
  const GoldenCase golden(GetParam(), "led");
  for (const char* dtype : {"fp32", "bf16"}) {
    const std::unique_ptr<Model> model = LoadLedCase(golden, dtype);
    ASSERT_NE(model, nullptr);
    for (int item = 0; item < golden.items(); ++item) {
      const Request request = Forced(golden, item, {"logits", "encoder_last_hidden_state"});
      const Answer whole = Generate(*model, request);
      for (const int grant : {1, 3}) {
        const Answer pieces = Generate(*model, request, grant * model->info().prefill_alignment);
        for (size_t t = 0; t < whole.tensors.size(); ++t) {
          EXPECT_EQ(whole.tensors[t].data, pieces.tensors[t].data)
              << dtype << " item " << item << " " << whole.tensors[t].name << " grant " << grant;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LedForward, ::testing::ValuesIn(ForwardCases()),
                         [](const auto& info) { return info.param; });

TEST(LedCheckpoints, EveryFormGivesTheSameLogits) {
  const GoldenCase golden("checkpoint_forms", "led");
  for (const auto& form : golden.description()["forms"]) {
    const std::string name = form;
    SCOPED_TRACE(name);
    const std::unique_ptr<Model> model = LoadLedCase(golden, "fp32", name);
    ASSERT_NE(model, nullptr);
    const Answer answer = Generate(*model, Forced(golden, 0, {"logits"}));
    const std::string own = "logits.0." + name;
    const bool apart = golden.Expects(own);
    EXPECT_LE(LargestDifference(answer.tensors[0].floats(),
                                golden.ExpectedExactly(apart ? own : "logits.0")),
              golden.tolerance("logits"));
  }
}

// generation_config.json counts alone where it is there, else the keys of config.json.
TEST(LedCheckpoints, SettingsComeFromTheDirectory) {
  const GoldenCase golden("checkpoint_forms", "led");
  for (const std::string name : {"model_both_generation_sources", "model_legacy_generation_keys"}) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Model> model = LoadLedCase(golden, "fp32", name);
    ASSERT_NE(model, nullptr);
    const Answer answer = Generate(*model, DocumentRequest(golden, 0, {}));
    const std::vector<double> row = golden.ExpectedExactly("sequences." + name);
    EXPECT_EQ(answer.sequences[0].token_ids, std::vector<int32_t>(row.begin() + 1, row.end()));
  }
}

}  // namespace
}  // namespace longview::models
