// Cases of golden/longformer that need more than one tensor per item: padded batches, pooling,
// multiple choice, text in and answers out, checkpoint forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

constexpr double kTolerance = 1e-4;

std::vector<int64_t> Row(const std::vector<int64_t>& all, size_t row, size_t width) {
  return {all.begin() + static_cast<ptrdiff_t>(row * width),
          all.begin() + static_cast<ptrdiff_t>((row + 1) * width)};
}

TokenInput PaddedRow(const GoldenCase& golden, const std::string& ids_name, size_t row,
                     size_t width, bool globals) {
  TokenInput tokens;
  for (const int64_t id : Row(golden.Integers(ids_name), row, width)) {
    tokens.ids.push_back(static_cast<int32_t>(id));
  }
  for (const int64_t bit : Row(golden.Integers("batch.attention_mask"), row, width)) {
    tokens.attention_mask.push_back(static_cast<uint8_t>(bit));
  }
  if (globals) {
    tokens.global_mask.emplace();
    for (const int64_t bit :
         Row(golden.Integers("batch_globals.global_attention_mask"), row, width)) {
      tokens.global_mask->push_back(static_cast<uint8_t>(bit));
    }
  }
  return tokens;
}

TEST(HeadsTest, PaddedBatchesOfHuggingFace) {
  const GoldenCase golden("classification_padded_batch");
  const auto model = golden.Load("fp32");
  const auto rows = static_cast<size_t>(golden.items());
  const size_t width = golden.Integers("batch.input_ids").size() / rows;
  struct Variant {
    std::string ids, expected;
    bool globals;
  };
  for (const Variant& variant : {Variant{"batch.input_ids", "batch.logits", false},
                                 Variant{"batch_garbage.input_ids", "batch_garbage.logits", false},
                                 Variant{"batch.input_ids", "batch_globals.logits", true}}) {
    std::vector<Request> requests;
    for (size_t row = 0; row < rows; ++row) {
      requests.push_back(TokenRequest(Task::kTextClassification,
                                      PaddedRow(golden, variant.ids, row, width, variant.globals),
                                      {"logits"}));
    }
    std::vector<float> logits;
    for (const Answer& answer : RunTogether(*model, requests)) {
      const auto values = answer.tensors.at(0).floats();
      logits.insert(logits.end(), values.begin(), values.end());
    }
    EXPECT_LE(LargestDifference(logits, golden.Expected(variant.expected)), kTolerance)
        << variant.expected;
  }
}

TEST(HeadsTest, PooledEmbeddings) {
  const GoldenCase golden("embeddings");
  const auto model = golden.Load("fp32");
  struct Variant {
    std::string pooling, expected;
    bool normalize;
  };
  for (const Variant& variant :
       {Variant{"mean", "mean", false}, Variant{"", "mean", false},
        Variant{"mean", "mean_normalized", true}, Variant{"cls", "cls", false},
        Variant{"pooler", "pooler_output", false}}) {
    for (int i = 0; i < golden.items(); ++i) {
      Request request = TokenRequest(Task::kEmbedding, golden.Tokens(i), {"embedding"});
      request.pooling = variant.pooling;
      request.normalize = variant.normalize;
      const Answer answer = RunAlone(*model, request);
      EXPECT_LE(LargestDifference(answer.tensors.at(0).floats(),
                                  golden.Expected(variant.expected + "." + std::to_string(i))),
                kTolerance)
          << variant.expected << " of item " << i;
    }
  }
}

TEST(HeadsTest, MultipleChoice) {
  const GoldenCase golden("multiple_choice");
  const auto model = golden.Load("fp32");
  const std::vector<double> want = golden.Expected("logits");
  const std::vector<int64_t> ids = golden.Integers("input_ids");
  const size_t width = ids.size() / want.size();
  Request request;
  request.task = Task::kMultipleChoice;
  request.tensors = {"logits"};
  for (size_t choice = 0; choice < want.size(); ++choice) {
    TokenInput& tokens = request.choice_tokens.emplace_back();
    for (const int64_t id : Row(ids, choice, width)) {
      tokens.ids.push_back(static_cast<int32_t>(id));
    }
  }
  const Answer answer = RunAlone(*model, request);
  EXPECT_LE(LargestDifference(answer.tensors.at(0).floats(), want), kTolerance);
  ASSERT_EQ(answer.labels.size(), want.size());
  const auto best = std::max_element(want.begin(), want.end()) - want.begin();
  EXPECT_EQ(answer.labels[0].id, best);
  double sum = 0;
  for (const LabelScore& label : answer.labels) sum += label.score;
  EXPECT_NEAR(sum, 1.0, 1e-6);
}

TEST(HeadsTest, MultilabelScoresAreSigmoids) {
  const GoldenCase golden("classification_multilabel");
  const auto model = golden.Load("fp32");
  for (int i = 0; i < golden.items(); ++i) {
    Request request = TokenRequest(Task::kTextClassification, golden.Tokens(i), {});
    request.typed = true;
    const std::vector<double> want = golden.Expected("probs." + std::to_string(i));
    const Answer answer = RunAlone(*model, request);
    ASSERT_EQ(answer.labels.size(), want.size());
    for (const LabelScore& label : answer.labels) {
      EXPECT_NEAR(label.score, want[static_cast<size_t>(label.id)], 1e-5);
    }
  }
}

TEST(HeadsTest, TextClassification) {
  const GoldenCase golden("text_classification");
  const auto model = golden.Load("fp32");
  const nlohmann::json texts = golden.Texts();
  for (size_t i = 0; i < texts.size(); ++i) {
    const nlohmann::json& text = texts[i];
    Request request;
    request.task = Task::kTextClassification;
    request.text = text["text"];
    if (!text["text_pair"].is_null()) request.text_pair = text["text_pair"];
    request.truncate = true;
    request.tensors = {"logits"};
    const Answer answer = RunAlone(*model, request);
    EXPECT_EQ(answer.usage.input_tokens, text["tokens"]) << "text " << i;
    EXPECT_LE(LargestDifference(answer.tensors.at(0).floats(),
                                golden.Expected("logits." + std::to_string(i))),
              kTolerance);
    EXPECT_EQ(answer.labels.at(0).name, text["label"]);
    for (const LabelScore& label : answer.labels) {
      EXPECT_NEAR(label.score, text["probs"][label.name].get<double>(), 1e-5);
    }
  }
}

TEST(HeadsTest, TextQuestionAnswering) {
  const GoldenCase golden("text_question_answering");
  const auto model = golden.Load("fp32");
  const nlohmann::json texts = golden.Texts();
  for (size_t i = 0; i < texts.size(); ++i) {
    Request request;
    request.task = Task::kQuestionAnswering;
    request.text = texts[i]["context"];
    request.question = texts[i]["question"];
    request.truncate = true;
    request.tensors = {"start_logits", "end_logits"};
    const Answer answer = RunAlone(*model, request);
    const std::string suffix = "." + std::to_string(i);
    EXPECT_LE(
        LargestDifference(answer.tensors.at(0).floats(), golden.Expected("start_logits" + suffix)),
        kTolerance);
    EXPECT_LE(
        LargestDifference(answer.tensors.at(1).floats(), golden.Expected("end_logits" + suffix)),
        kTolerance);
    ASSERT_EQ(answer.answers.size(), 1u);
    EXPECT_EQ(answer.answers[0].text, texts[i]["answer"]);
    EXPECT_EQ(answer.answers[0].start, texts[i]["span_codepoints"][0]);
    EXPECT_EQ(answer.answers[0].end, texts[i]["span_codepoints"][1]);
    EXPECT_NEAR(answer.answers[0].score, texts[i]["score"].get<double>(), kTolerance);
    EXPECT_GT(answer.answers[0].probability, 0);
    EXPECT_LE(answer.answers[0].probability, 1);
  }
}

TEST(HeadsTest, TextFillMask) {
  const GoldenCase golden("text_fill_mask");
  const auto model = golden.Load("fp32");
  const nlohmann::json texts = golden.Texts();
  for (size_t i = 0; i < texts.size(); ++i) {
    for (const bool with_logits : {false, true}) {
      Request request;
      request.task = Task::kFillMask;
      request.text = texts[i]["text"];
      if (with_logits) request.tensors = {"logits"};
      const Answer answer = RunAlone(*model, request);
      ASSERT_EQ(answer.masks.size(), texts[i]["mask_positions"].size());
      for (size_t m = 0; m < answer.masks.size(); ++m) {
        const MaskFill& mask = answer.masks[m];
        EXPECT_EQ(mask.position, texts[i]["mask_positions"][m]);
        ASSERT_EQ(mask.candidates.size(), 5u);
        for (size_t k = 0; k < 5; ++k) {
          EXPECT_EQ(mask.candidates[k].token_id, texts[i]["top5_ids"][m][k]);
          EXPECT_EQ(mask.candidates[k].token, texts[i]["top5_text"][m][k]);
          EXPECT_NEAR(mask.candidates[k].logprob, texts[i]["top5_logprobs"][m][k].get<double>(),
                      kTolerance);
        }
      }
    }
  }
}

// The rows of the masks alone, and their price: not that of [T, V].
TEST(HeadsTest, MaskLogitsAreTheRowsOfTheMasks) {
  const GoldenCase golden("text_fill_mask");
  const auto model = golden.Load("fp32");
  const nlohmann::json texts = golden.Texts();
  for (size_t i = 0; i < texts.size(); ++i) {
    Request request;
    request.task = Task::kFillMask;
    request.text = texts[i]["text"];
    request.tensors = {"logits"};
    const Answer all = RunAlone(*model, request);
    const double all_bytes = (*model->Prepare(request))->cost().workspace_bytes;
    request.tensors = {"mask_logits"};
    const double mask_bytes = (*model->Prepare(request))->cost().workspace_bytes;
    for (const bool typed : {true, false}) {
      request.typed = typed;
      request.tensors = {"mask_logits"};
      const Answer alone = RunAlone(*model, request);
      request.tensors = {"logits", "mask_logits"};
      const Answer both = RunAlone(*model, request);
      const HostTensor& rows = alone.tensors.at(0);
      ASSERT_EQ(rows.shape.size(), 2u);
      ASSERT_EQ(rows.shape[0], static_cast<int64_t>(all.masks.size()));
      ASSERT_EQ(rows.shape[1], all.tensors[0].shape[1]);
      EXPECT_EQ(both.tensors.at(1).data, rows.data);
      const auto vocab = static_cast<size_t>(rows.shape[1]);
      for (size_t m = 0; m < all.masks.size(); ++m) {
        const auto position = static_cast<size_t>(all.masks[m].position);
        const auto row = rows.floats().subspan(m * vocab, vocab);
        const auto want = all.tensors[0].floats().subspan(position * vocab, vocab);
        EXPECT_TRUE(std::equal(row.begin(), row.end(), want.begin())) << "mask " << m;
      }
      const double tokens = static_cast<double>(all.tensors[0].shape[0]);
      const double masks = static_cast<double>(rows.shape[0]);
      // Less a little: the last layer gathers the queries of single rows.
      EXPECT_GE(all_bytes - mask_bytes, 0.9 * (tokens - masks) * static_cast<double>(vocab) * 4);
    }
  }
}

TEST(HeadsTest, EveryCheckpointFormGivesTheSameLogits) {
  const GoldenCase golden("checkpoint_forms");
  for (const std::string form :
       {"model", "model_alias_decoder", "model_both_names_and_position_ids", "model_sharded",
        "model_bf16", "model_f16", "model_bin_zip", "model_bin_legacy"}) {
    const auto model = golden.Load("fp32", form);
    const bool rounded = form == "model_bf16" || form == "model_f16";
    const Answer answer =
        RunAlone(*model, TokenRequest(Task::kFillMask, golden.Tokens(0), {"logits"}));
    EXPECT_LE(LargestDifference(answer.tensors.at(0).floats(),
                                golden.Expected(rounded ? "logits.0." + form : "logits.0")),
              kTolerance)
        << form;
  }
}

}  // namespace
}  // namespace longview::models
