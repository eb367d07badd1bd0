// A document gets equal bits alone and in any batch, in both compute types, whatever others wait
// for, drop or mark global.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "models/config/json_reader.h"
#include "models/model.h"
#include "models/team_turn.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

struct Setting {
  const char* family;
  const char* golden;
  Task task;
  const char* tensor;
  const char* dtype;
};

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.family << " " << setting.golden << " " << setting.dtype;
}

// Random documents of a task, with and without global tokens and holes.
TokenInput RandomTokens(Task task, const ModelInfo& info, int vocab, std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  TokenInput tokens;
  const int count = pick(task == Task::kQuestionAnswering ? 8 : 1, std::min(info.max_tokens, 300));
  for (int i = 0; i < count; ++i) tokens.ids.push_back(pick(4, std::min(90, vocab - 1)));
  if (task == Task::kQuestionAnswering) {
    tokens.ids[pick(1, 5)] = 2;
    tokens.ids.back() = 2;
  }
  if (pick(0, 3) == 0) {
    tokens.attention_mask.assign(count, 1);
    for (int i = 1; i < count; ++i) tokens.attention_mask[i] = pick(0, 9) != 0;
  }
  if (info.family == "longformer" && pick(0, 2) == 0) {
    tokens.global_mask.emplace(count, uint8_t{0});
    const int globals = pick(0, 6);
    for (int i = 0; i < globals; ++i) (*tokens.global_mask)[pick(0, count - 1)] = 1;
  }
  return tokens;
}

class BatchInvarianceTest : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    const GoldenCase golden(GetParam().golden, GetParam().family);
    model_ = golden.Load(GetParam().dtype);
    vocab_ = (*ReadJsonFile(golden.directory() + "/config.json")).value("vocab_size", 0);
    if (model_->info().dtype != GetParam().dtype) {
      GTEST_SKIP() << "computes in " << model_->info().dtype;
    }
  }

  Request RandomRequest() {
    const auto tokens = [&] {
      return RandomTokens(GetParam().task, model_->info(), vocab_, random_);
    };
    Request request = TokenRequest(GetParam().task, tokens(), {GetParam().tensor});
    const bool pair = GetParam().task == Task::kTextPairClassification;
    if (pair || GetParam().task == Task::kRerank) request.tokens_pair = tokens();
    request.truncate = GetParam().task == Task::kRerank;  // Both share one sequence.
    // Some want every row of the last layer.
    const bool rows = pair || GetParam().task == Task::kMultiVector;
    if (!rows && random_() % 3 == 0) request.tensors.push_back("last_hidden_state");
    return request;
  }

  std::unique_ptr<Model> model_;
  int vocab_ = 0;
  std::mt19937 random_{17};
};

TEST_P(BatchInvarianceTest, AloneAndInRandomBatches) {
  constexpr int kDocuments = 12, kBatches = 15;
  std::vector<Request> requests;
  std::vector<Answer> alone;
  for (int i = 0; i < kDocuments; ++i) {
    requests.push_back(RandomRequest());
    alone.push_back(RunAlone(*model_, requests.back()));
  }
  for (int batch = 0; batch < kBatches; ++batch) {
    std::vector<int> members;
    const int size = 1 + static_cast<int>(random_() % 8);
    for (int i = 0; i < size; ++i) members.push_back(static_cast<int>(random_() % kDocuments));
    std::vector<Request> together;
    for (const int member : members) together.push_back(requests[member]);
    const std::vector<Answer> answers = RunTogether(*model_, together);
    for (size_t i = 0; i < members.size(); ++i) {
      const Answer& want = alone[members[i]];
      ASSERT_EQ(answers[i].tensors.size(), want.tensors.size());
      for (size_t t = 0; t < want.tensors.size(); ++t) {
        ASSERT_EQ(answers[i].tensors[t].data, want.tensors[t].data)
            << "document " << members[i] << " in batch " << batch << ", " << want.tensors[t].name;
      }
    }
  }
}

// A step may run on one thread or on all: its bits are the same.
TEST_P(BatchInvarianceTest, OneThreadAndAll) {
  SetComputeThreads(3);
  for (int i = 0; i < 12; ++i) {
    const Request request = RandomRequest();
    std::array<Answer, 2> answers;
    for (const Team team : {Team::kOne, Team::kAll}) {
      const TeamForced forced(team);
      answers[static_cast<size_t>(team)] = RunAlone(*model_, request);
    }
    for (size_t t = 0; t < answers[0].tensors.size(); ++t) {
      EXPECT_EQ(answers[0].tensors[t].data, answers[1].tensors[t].data)
          << answers[0].tensors[t].name;
    }
  }
}

TEST_P(BatchInvarianceTest, DroppedItemsLeaveWithoutATrace) {
  constexpr int kItems = 5;
  std::vector<std::unique_ptr<Item>> items;
  std::vector<const Item*> borrowed;
  std::vector<Answer> alone;
  for (int i = 0; i < kItems; ++i) {
    const Request request = RandomRequest();
    alone.push_back(RunAlone(*model_, request));
    items.push_back(*model_->Prepare(request));
    borrowed.push_back(items.back().get());
  }
  for (const int drop_before : {0, 1}) {
    const auto run = model_->Begin(borrowed);
    int step = 0;
    bool more = true;
    while (more) {
      if (step == drop_before) {
        run->Drop(0);
        run->Drop(3);
      }
      more = run->Advance();
      ++step;
    }
    for (int i = 0; i < kItems; ++i) {
      const absl::StatusOr<Answer> answer = run->Take(i);
      const bool dropped = step > drop_before && (i == 0 || i == 3);
      if (dropped) {
        EXPECT_FALSE(answer.ok());
        continue;
      }
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->tensors.at(0).data, alone[i].tensors.at(0).data) << "item " << i;
    }
  }
}

TEST_P(BatchInvarianceTest, OthersGoBetweenItsLoops) {
  const Request request = RandomRequest();
  ExpectVisitorsChangeNothing(*model_, request, RandomRequest());
}

TEST_P(BatchInvarianceTest, ABatchThatEverybodyLeftEnds) {
  const std::unique_ptr<Item> item = *model_->Prepare(RandomRequest());
  const Item* const items[] = {item.get()};
  const auto run = model_->Begin(items);
  run->Drop(0);
  while (run->Advance()) {
  }
  EXPECT_FALSE(run->Take(0).ok());
}

constexpr Setting kSettings[] = {
    {"longformer", "classification", Task::kTextClassification, "logits", "fp32"},
    {"longformer", "classification", Task::kTextClassification, "logits", "bf16"},
    {"longformer", "dilated", Task::kTextClassification, "logits", "fp32"},
    {"longformer", "head64_window128", Task::kTextClassification, "logits", "fp32"},
    {"longformer", "head64_window128", Task::kTextClassification, "logits", "bf16"},
    {"longformer", "question_answering", Task::kQuestionAnswering, "start_logits", "fp32"},
    {"longformer", "question_answering", Task::kQuestionAnswering, "start_logits", "bf16"},
    {"longformer", "embeddings", Task::kEmbedding, "embedding", "fp32"},
    {"longformer", "masked_lm", Task::kFillMask, "logits", "bf16"},
    {"transformer_ls_text", "interior_mask", Task::kTextClassification, "logits", "fp32"},
    {"transformer_ls_text", "interior_mask", Task::kTextClassification, "logits", "bf16"},
    {"transformer_ls_text", "all_layers_tied_w3", Task::kTextClassification, "logits", "fp32"},
    {"transformer_ls_text", "first_token_w4_r2", Task::kEmbedding, "embedding", "bf16"},
    {"transformer_ls_text", "mean_length_w2_r0", Task::kTextClassification, "logits", "fp32"},
    {"transformer_ls_text", "listops_best_w16_r2_long", Task::kTextClassification, "logits",
     "bf16"},
    {"luna", "lra_text_cls", Task::kTextClassification, "logits", "fp32"},
    {"luna", "lra_text_cls", Task::kTextClassification, "logits", "bf16"},
    {"luna", "lra_match_cls", Task::kTextPairClassification, "logits", "fp32"},
    {"luna", "mlm_tied", Task::kFillMask, "logits", "fp32"},
    {"luna", "seqcls_attention", Task::kTextClassification, "logits", "bf16"},
    {"transformer_ls_text", "retrieval_pair_w8_r32", Task::kTextPairClassification, "logits",
     "fp32"},
    {"modernbert", "config_half_new", Task::kTokenClassification, "logits", "fp32"},
    {"modernbert", "config_half_new", Task::kTokenClassification, "logits", "bf16"},
    {"xlm_roberta", "text_reranker", Task::kTextClassification, "logits", "fp32"},
    {"xlm_roberta", "text_reranker", Task::kRerank, "logits", "bf16"},
    {"sentence_transformers", "modernbert_include_prompt_false", Task::kEmbedding, "embedding",
     "bf16"},
    {"sentence_transformers", "roberta_list_mean_cls", Task::kEmbedding, "embedding", "fp32"},
    {"sentence_transformers", "colbert_modernbert", Task::kMultiVector, "last_hidden_state",
     "fp32"},
    {"cst", "lra_alpha2_mask", Task::kTextClassification, "logits", "fp32"},
    {"cst", "lra_alpha2_mask", Task::kTextClassification, "logits", "bf16"},
    {"cst", "lra_alpha3_zero_separate", Task::kTextClassification, "logits", "fp32"},
    {"cst", "lra_global_first", Task::kTextClassification, "logits", "bf16"},
    {"cst", "lra_mlp", Task::kTextClassification, "logits", "bf16"},
    {"cst", "lra_pool_linear", Task::kTextClassification, "logits", "fp32"},
    {"cst", "lra_pool_max", Task::kTextClassification, "logits", "bf16"},
    {"cst", "lra_retrieval_nli", Task::kTextPairClassification, "logits", "fp32"},
    {"cst", "glue_pooler", Task::kTextClassification, "logits", "bf16"},
    {"cst", "mlm_factorised", Task::kFillMask, "logits", "fp32"},
    {"longformer", "dilated", Task::kTextClassification, "logits", "int8"},
    {"longformer", "question_answering", Task::kQuestionAnswering, "start_logits", "int8"},
    {"transformer_ls_text", "interior_mask", Task::kTextClassification, "logits", "int8"},
    {"luna", "lra_text_cls", Task::kTextClassification, "logits", "int8"},
    {"modernbert", "config_half_new", Task::kTokenClassification, "logits", "int8"},
    {"xlm_roberta", "text_reranker", Task::kRerank, "logits", "int8"},
    {"sentence_transformers", "roberta_list_mean_cls", Task::kEmbedding, "embedding", "int8"},
    {"cst", "lra_alpha2_mask", Task::kTextClassification, "logits", "int8"},
};

INSTANTIATE_TEST_SUITE_P(Settings, BatchInvarianceTest, ::testing::ValuesIn(kSettings),
                         [](const auto& info) {
                           return std::string(info.param.family) + "_" + info.param.golden + "_" +
                                  info.param.dtype;
                         });

}  // namespace
}  // namespace longview::models
