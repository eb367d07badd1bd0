// Properties that hold whatever the weights: the test list of the Luna specification, requests that
// cannot be read, checkpoints that do not fit their configuration.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

GoldenCase Case(const std::string& name) { return GoldenCase(name, "luna"); }

TokenInput Ids(int count, uint32_t seed) { return RandomIds(count, seed, 4, 24); }

Request TextRequestOf(Task task, const std::string& text) {
  Request request;
  request.task = task;
  request.text = text;
  request.tensors = {"logits"};
  return request;
}

TEST(LunaEdgesTest, PaddingAnywhereBehindTheFirstTokenChangesNoBit) {
  const auto model = Case("lra_text_cls").Load("fp32");
  TokenInput tokens = Ids(21, 2);
  const std::vector<float> want = Logits(*model, tokens);
  tokens.ids.resize(34, 1);
  EXPECT_EQ(Logits(*model, tokens), want);
  TokenInput masked = Ids(21, 2);
  masked.ids.insert(masked.ids.begin() + 5, {9, 9, 9});
  masked.attention_mask.assign(24, 1);
  std::fill_n(masked.attention_mask.begin() + 5, 3, uint8_t{0});
  const std::vector<float> inside = Logits(*model, masked);
  EXPECT_LE(Difference(inside, want), 1e-6);
}

TEST(LunaEdgesTest, EveryLengthAroundTheProjectionIsFinite) {
  for (const char* name : {"lra_text_cls", "lra_proj1", "lra_use_p", "seqcls_pooling"}) {
    const auto model = Case(name).Load("fp32");
    for (const int tokens : {2, 3, 15, 16, 17, 31}) {
      ExpectFinite(Logits(*model, Ids(tokens, 1)), name);
    }
  }
}

TEST(LunaEdgesTest, NormGainsThatAreStoredOtherwise) {
  const GoldenCase golden = Case("lra_text_cls");
  const std::vector<float> want = Logits(*golden.Load("fp32"), Ids(30, 3));
  EditedModel edited(golden);
  edited.config["layer_norm_gain"] = "one_plus";
  for (auto& [name, tensor] : edited.tensors) {
    if (!name.ends_with("norm.weight")) continue;
    for (float& value : tensor.values) value -= 1;
  }
  const auto model = edited.Load();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_LE(Difference(Logits(**model, Ids(30, 3)), want), 1e-5);
}

TEST(LunaEdgesTest, OldFilesHaveTheRolesSwapped) {
  const GoldenCase golden = Case("seqcls_cls");
  const std::vector<float> want = Logits(*golden.Load("fp32"), Ids(30, 3));
  EditedModel edited(golden);
  edited.config["legacy_proj_roles"] = true;
  for (auto& [name, tensor] : edited.tensors) {
    const size_t at = name.find(".pc_proj.");
    if (at == std::string::npos) continue;
    std::string other = name;
    other.replace(at, 9, ".c_proj.");
    std::swap(tensor, edited.tensors.at(other));
  }
  EXPECT_EQ(Logits(**edited.Load(), Ids(30, 3)), want);
}

TEST(LunaEdgesTest, DocumentsAreNotSymmetric) {
  const auto model = Case("lra_match_cls").Load("fp32");
  Request pair = TokenRequest(Task::kTextPairClassification, Ids(20, 5), {"logits"});
  pair.tokens_pair = Ids(30, 6);
  ExpectOrderMatters(*model, pair);
}

// Symbols of dict.txt in the model's template; the fixtures' symbols are t0.. and 0.. from id 4 on.
TEST(LunaEdgesTest, TextIsReadByTheDictionary) {
  const auto lra = Case("lra_text_cls").Load("fp32");
  Request text = TextRequestOf(Task::kTextClassification, "t0 t3  t19\tnowhere");
  EXPECT_EQ(FirstTensor(*lra, text), Logits(*lra, {{24, 4, 7, 23, 3, 2}, {}, {}, {}}));

  const auto pairs = Case("lra_match_cls").Load("fp32");
  Request two = TextRequestOf(Task::kTextPairClassification, "t1 t2");
  two.text_pair = "t3";
  Request ids =
      TokenRequest(Task::kTextPairClassification, {{24, 5, 6, 2}, {}, {}, {}}, {"logits"});
  ids.tokens_pair = TokenInput{{24, 7, 2}, {}, {}, {}};
  EXPECT_EQ(FirstTensor(*pairs, two), FirstTensor(*pairs, ids));

  const auto bert = Case("seqcls_cls").Load("fp32");
  Request joined = TextRequestOf(Task::kTextClassification, "0 1");
  joined.text_pair = "2";
  EXPECT_EQ(FirstTensor(*bert, joined), Logits(*bert, {{0, 4, 5, 2, 2, 6, 2}, {}, {}, {}}));

  const auto mlm = Case("mlm_tied").Load("fp32");
  Request masked = TextRequestOf(Task::kFillMask, "0 5 <mask> 7");
  masked.tensors = {"mask_logits"};
  masked.top_k = 3;
  const Answer answer = RunAlone(*mlm, masked);
  Request all = TokenRequest(Task::kFillMask, {{0, 4, 9, 64, 11, 2}, {}, {}, {}}, {"logits"});
  const std::vector<float> rows = FirstTensor(*mlm, all);
  const auto row = answer.tensors.at(0).floats();
  EXPECT_TRUE(std::equal(row.begin(), row.end(), rows.begin() + 3 * 65));
}

// The mean of these rows of `states` [tokens, width].
std::vector<double> MeanOf(const HostTensor& states, const std::vector<int>& rows) {
  const auto values = states.floats();
  std::vector<double> mean(static_cast<size_t>(states.shape[1]));
  for (const int row : rows) {
    for (size_t i = 0; i < mean.size(); ++i) {
      mean[i] +=
          values[static_cast<size_t>(row) * mean.size() + i] / static_cast<double>(rows.size());
    }
  }
  return mean;
}

Request MeanRequest(const std::string& text) {
  Request request = TextRequestOf(Task::kEmbedding, text);
  request.tensors = {"embedding", "last_hidden_state"};
  request.pooling = "mean";
  request.normalize = false;
  return request;
}

// Vectors of the answer are means of these rows of its states.
void ExpectMeans(const Answer& answer, const std::vector<std::vector<int>>& rows) {
  const HostTensor& states = answer.tensors.at(1);
  std::vector<double> want;
  for (const std::vector<int>& own : rows) {
    const std::vector<double> mean = MeanOf(states, own);
    want.insert(want.end(), mean.begin(), mean.end());
  }
  EXPECT_LE(LargestDifference(answer.tensors.at(0).floats(), want), 1e-6);
}

void ExpectNotPlanned(const Model& model, const Request& request, const std::string& problem) {
  const absl::Status status = model.PlanChunks(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), problem)) << status;
}

// lra_use_p drops its class token, so that its rows begin with the text's.
TEST(LunaEdgesTest, ChunksAreTheRowsOfTheirTokens) {
  for (const auto& [name, first] : {std::pair("lra_use_p", 0), std::pair("lra_text_cls", 1)}) {
    SCOPED_TRACE(name);
    const auto model = Case(name).Load("fp32");
    Request request = MeanRequest("t0 t1 t2 t3 t4");
    request.chunk_tokens = 2;
    const int f = first;
    const auto answer = [&] { return RunChunks(*model, request).answers.at(0); };
    ExpectMeans(answer(), {{f, f + 1}, {f + 2, f + 3}, {f + 4}});
    // Padding in the text is masked.
    request.text = "t0 <pad> t1 t2";
    ExpectMeans(answer(), {{f, f + 2}, {f + 3}});
    request.chunk_tokens.reset();
    request.chunks = {{0, 11}, {12, 14}, {0, 14}};
    ExpectMeans(answer(), {{f, f + 2}, {f + 3}, {f, f + 2, f + 3}});
    request.chunks = {{3, 8}};
    ExpectNotPlanned(*model, request, "chunks[0]: no token");
  }
}

TEST(LunaEdgesTest, ChunksEndBeforePaddingThatIsLeftOut) {
  EditedModel edited(Case("lra_text_cls"));
  edited.Write();
  std::ofstream(edited.directory() + "/tokenizer.json") << R"({"version": "1.0",
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {
      "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "t0": 4, "t1": 5}}})";
  const auto model = edited.Load();
  ASSERT_TRUE(model.ok()) << model.status();
  Request request = MeanRequest("t0 t1 <pad> <pad>");
  request.tensors = {"embedding"};
  request.chunk_tokens = 1;
  EXPECT_EQ(RunChunks(**model, request).vectors.size(), 2u);
  request.chunk_tokens.reset();
  request.chunks = {{0, 17}, {3, 5}};
  EXPECT_EQ(RunChunks(**model, request).vectors.size(), 2u);
  request.chunks = {{0, 2}, {6, 11}};
  ExpectNotPlanned(**model, request, "chunks[1]: no token");
}

TEST(LunaEdgesTest, APromptIsLeftOutWithoutTheClassToken) {
  const GoldenCase golden = Case("lra_use_p");
  EditedModel edited(golden);
  edited.Write();
  std::filesystem::copy_file(golden.directory() + "/dict.txt", edited.directory() + "/dict.txt");
  std::filesystem::create_directory(edited.directory() + "/1_Pooling");
  std::ofstream(edited.directory() + "/1_Pooling/config.json")
      << R"({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": true,
             "include_prompt": false})";
  const auto model = edited.Load();
  ASSERT_TRUE(model.ok()) << model.status();
  Request request = MeanRequest("t0 t1");
  request.prompt = "t5 t6 ";
  ExpectMeans(RunAlone(**model, request), {{2, 3, 4}});  // t0 t1 </s>
}

TEST(LunaEdgesTest, RequestsThatCannotBeRead) {
  const auto model = Case("lra_text_cls").Load("fp32");
  ExpectRefused(*model, Classify(Ids(65, 1)), "64");
  ExpectRefused(*model, Classify({{1, 1}, {}, {}, {}}), "every token is masked");
  ExpectRefused(*model, Classify({{1, 5}, {}, {}, {}}), "first token is masked");
  ExpectRefused(*model, Classify({{5, 25}, {}, {}, {}}), "[0, 25)");
  const auto projected = Case("lra_use_p").Load("fp32");
  ExpectRefused(*projected, Classify(Ids(1, 1)), "class token");
}

// fairseq counts positions of visible tokens alone, and so does the limit.
TEST(LunaEdgesTest, PaddingTakesNoPositionsFromTheLimit) {
  const auto model = Case("lra_text_cls").Load("fp32");
  TokenInput full = Ids(64, 4);
  const std::vector<float> want = Logits(*model, full);
  TokenInput padded = full;
  padded.ids.resize(80, 1);
  EXPECT_EQ(Logits(*model, padded), want);
  TokenInput inside = full;
  inside.ids.insert(inside.ids.begin() + 30, 9, 1);
  EXPECT_LE(Difference(Logits(*model, inside), want), 1e-6);
  TokenInput masked = inside;
  for (int32_t& id : masked.ids) id = id == 1 ? 9 : id;
  masked.attention_mask.assign(masked.ids.size(), 1);
  std::fill_n(masked.attention_mask.begin() + 30, 9, uint8_t{0});
  EXPECT_LE(Difference(Logits(*model, masked), want), 1e-6);
  TokenInput longer = Ids(65, 4);
  longer.ids.resize(70, 1);
  ExpectRefused(*model, Classify(longer), "65 tokens");
  // Cut from the end: what is visible, and the padding with it; a separator stays.
  const auto sentence = Case("seqcls_cls").Load("fp32");
  const int most = sentence->info().max_tokens;
  TokenInput cut = Ids(most + 1, 4), left = Ids(most, 4);
  cut.ids.back() = left.ids.back() = 2;
  std::copy_n(cut.ids.begin(), most - 1, left.ids.begin());
  cut.ids.resize(cut.ids.size() + 5, 1);
  Request request = Classify(cut);
  request.truncate = true;
  EXPECT_EQ(FirstTensor(*sentence, request), Logits(*sentence, left));
  EXPECT_EQ(RunAlone(*sentence, request).usage.truncated_tokens, 1);
}

TEST(LunaEdgesTest, CheckpointsThatDoNotFitAreRefusedByName) {
  const Broken cases[] = {
      {"missing", [](EditedModel& m) { m.tensors.erase("encoder.encoder.layers.1.fc1.bias"); },
       "layers.1.fc1.bias"},
      {"tied", [](EditedModel& m) { m.config["tie_kv"] = true; }, "pc_proj.weight"},
      {"pre-norm",
       [](EditedModel& m) {
         m.config["norm_position"] = "pre";
         m.config["embedding_layer_norm"] = false;
       },
       "encoder.encoder.layer_norm"},
      {"noise",
       [](EditedModel& m) {
         m.tensors["encoder.encoder.quant_noise.weight"] = {{1}, {1}};
       },
       "quant_noise"},
      {"other rows of P", [](EditedModel& m) { m.config["proj_len"] = 7; }, "projected_embeddings"},
      {"a layer less", [](EditedModel& m) { m.config["num_layers"] = 1; }, "layers.1"},
      {"shared layers", [](EditedModel& m) { m.config["tie_layer_weights"] = true; }, "layers.1"},
  };
  for (const Broken& broken : cases) ExpectRefusedByName(Case("lra_text_cls"), broken);
}

TEST(LunaEdgesTest, InspectionExplainsWhatAHeadDoes) {
  ExpectExplained(Case("mlm_tied"), "fill-mask");
  ExpectExplained(Case("lra_match_cls"), "text-pair-classification");
}

}  // namespace
}  // namespace longview::models
