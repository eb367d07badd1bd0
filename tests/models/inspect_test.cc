// InspectDirectory's words, and that it agrees with LoadModel.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "models/inspect.h"
#include "models/model.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path Golden(const std::string& name) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return fs::path(root ? root : LONGVIEW_GOLDEN_DIR) / "longformer" / name;
}

class InspectTest : public ::testing::Test {
 protected:
  void Copy(const std::string& golden) { CopyFrom(Golden(golden)); }

  void CopyFrom(const fs::path& model) {
    for (const auto& entry : fs::directory_iterator(model)) {
      if (!entry.is_regular_file()) continue;
      const std::string to = directory_.Path(entry.path().filename().string());
      fs::copy_file(entry.path(), to);
      fs::permissions(to, fs::perms::owner_write, fs::perm_options::add);
    }
  }

  void EditConfig(const json& changes) {
    std::ifstream in(directory_.Path("config.json"));
    json config = json::parse(in);
    config.update(changes);
    directory_.Write("config.json", config.dump());
  }

  // Refused by both, for the same reason.
  Inspection ExpectRefused(const std::string& part) {
    const Inspection inspection = InspectDirectory(directory_.path());
    EXPECT_FALSE(inspection.servable);
    EXPECT_NE(inspection.error.find(part), std::string::npos) << inspection.error;
    EXPECT_NE(inspection.report.find("served:"), std::string::npos);
    EXPECT_EQ(inspection.error.find('\n'), std::string::npos);
    const auto model = LoadModel(directory_.path(), {});
    EXPECT_FALSE(model.ok());
    EXPECT_EQ(model.status().message(), inspection.error);
    return inspection;
  }

  testing::TempDirectory directory_;
};

TEST_F(InspectTest, EveryServedGoldenIsServable) {
  int served = 0;
  for (const auto& entry : fs::directory_iterator(Golden(""))) {
    const fs::path model = entry.path() / "model";
    if (!fs::exists(model / "config.json")) continue;
    const Inspection inspection = InspectDirectory(model.string());
    EXPECT_TRUE(inspection.servable) << model << ": " << inspection.error;
    EXPECT_NE(inspection.report.find("served:       yes"), std::string::npos) << inspection.report;
    ++served;
  }
  EXPECT_GE(served, 10);
}

TEST_F(InspectTest, SaysWhatTheModelCanDo) {
  const Inspection inspection = InspectDirectory(Golden("text_classification/model").string());
  for (const char* part : {"LongformerForSequenceClassification", "text-classification",
                           "5: LABEL-a, LABEL-b", "700 tokens, model_max_length 512", "F32 x "}) {
    EXPECT_NE(inspection.report.find(part), std::string::npos) << part << "\n" << inspection.report;
  }
  const Inspection bare = InspectDirectory(Golden("classification/model").string());
  EXPECT_NE(bare.report.find("requests must bring token ids"), std::string::npos) << bare.report;
}

TEST_F(InspectTest, SaysWhatSentenceTransformersAdd) {
  const fs::path model = fs::path(LONGVIEW_GOLDEN_DIR) /
                         "sentence_transformers/xlm_roberta_mean_dense_default_prompt/model";
  const Inspection inspection = InspectDirectory(model.string());
  for (const char* part : {"embedding:    24: mean, Dense 24, Normalize",
                           "prompts:      passage, query; default query"}) {
    EXPECT_NE(inspection.report.find(part), std::string::npos) << part << "\n" << inspection.report;
  }
}

TEST_F(InspectTest, SaysWhatTheModelComputesInAndWhy) {
  Copy("classification/model");
  const auto computed_in = [&](const LoadOptions& options) {
    const std::string report = InspectDirectory(directory_.path(), options).report;
    const size_t at = report.find("computed in: ");
    if (at == std::string::npos) return report;
    return report.substr(at, report.find('\n', at) - at);
  };
  EditConfig({{"dtype", "float16"}, {"torch_dtype", "float16"}});
  EXPECT_TRUE(computed_in({}).starts_with("computed in:  fp32: config.json says float16, which "))
      << computed_in({});
  EXPECT_EQ(computed_in({.dtype = "fp32"}), "computed in:  fp32: --dtype says so");
  directory_.Write("longview.json", R"({"dtype": "fp32"})");
  EXPECT_EQ(computed_in({}), "computed in:  fp32: longview.json says fp32");
  const auto model = LoadModel(directory_.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().dtype, "fp32");
  EXPECT_FALSE(InspectDirectory(directory_.path(), {.dtype = "fp16"}).servable);
}

TEST_F(InspectTest, HalvesAreComputedInFp32UnlessAsked) {
  Copy("classification/model");
  EditConfig({{"dtype", "float16"}, {"torch_dtype", "float16"}});
  const auto model = LoadModel(directory_.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().dtype, "fp32");
  ASSERT_EQ((*model)->info().notes.size(), 1u);
  EXPECT_TRUE((*model)->info().notes[0].starts_with("computed in fp32: config.json says float16"));
}

TEST_F(InspectTest, SaysARerankersActivation) {
  CopyFrom(fs::path(LONGVIEW_GOLDEN_DIR) /
           "sentence_transformers/reranker_modernbert_sigmoid/model");
  const Inspection sigmoid = InspectDirectory(directory_.path());
  EXPECT_NE(sigmoid.report.find("activation:   sigmoid\n"), std::string::npos) << sigmoid.report;
  directory_.Write("config_sentence_transformers.json",
                   R"({"activation_fn": "torch.nn.modules.linear.Identity"})");
  const Inspection identity = InspectDirectory(directory_.path());
  EXPECT_NE(identity.report.find("activation:   identity: scores are the logits\n"),
            std::string::npos)
      << identity.report;
}

TEST_F(InspectTest, PickledWeightsAreServed) {
  Copy("checkpoint_forms/model_bin_zip");
  const Inspection inspection = InspectDirectory(directory_.path());
  EXPECT_TRUE(inspection.servable) << inspection.error;
  EXPECT_TRUE(LoadModel(directory_.path(), {}).ok());
}

TEST_F(InspectTest, PicklesThatCannotBeReadAreRefusedWithTheCommand) {
  Copy("checkpoint_forms/model_bin_zip");
  const std::string weights = directory_.Path("pytorch_model.bin");
  fs::resize_file(weights, fs::file_size(weights) / 2);
  ExpectRefused("python3 models/convert/pickle_to_safetensors.py " + directory_.path());
}

TEST_F(InspectTest, OtherArchitecturesAreNamed) {
  Copy("classification/model");
  EditConfig({{"architectures", {"BigBirdForSequenceClassification"}}, {"model_type", "big_bird"}});
  const Inspection inspection = ExpectRefused("BigBirdForSequenceClassification");
  EXPECT_NE(inspection.error.find("--task"), std::string::npos) << inspection.error;
  EXPECT_LT(inspection.error.size(), 300u);
}

TEST_F(InspectTest, AnUnservedClassOfAKnownTypeIsReadAsItsBase) {
  Copy("embeddings/model");
  EditConfig({{"architectures", {"LongformerForNextSentencePrediction"}}});
  const Inspection inspection = InspectDirectory(directory_.path());
  EXPECT_TRUE(inspection.servable) << inspection.error;
  const std::string note =
      "config.json names LongformerForNextSentencePrediction, which is not served: taken as "
      "LongformerModel; --task overrides that";
  EXPECT_NE(inspection.report.find(note), std::string::npos) << inspection.report;
  const auto model = LoadModel(directory_.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().notes, std::vector<std::string>{note});
  EXPECT_FALSE(LoadModel(directory_.path(), {.task = Task::kQuestionAnswering}).ok());
}

TEST_F(InspectTest, AHeadThatTheCheckpointLacksIsNamed) {
  Copy("embeddings/model");
  EditConfig({{"architectures", {"LongformerForQuestionAnswering"}}});
  const Inspection inspection = ExpectRefused("\"qa_outputs.weight\" [2, ");
  EXPECT_NE(inspection.error.find("--task embedding"), std::string::npos) << inspection.error;
}

TEST_F(InspectTest, MisshapenAndUnknownTensorsAreNamed) {
  Copy("classification/model");
  EditConfig({{"vocab_size", 77}});
  ExpectRefused("word_embeddings.weight\": expected shape [77, ");
  directory_.Write("config.json", "");
  fs::remove(directory_.Path("config.json"));
  fs::copy_file(Golden("classification/model/config.json"), directory_.Path("config.json"));
  fs::permissions(directory_.Path("config.json"), fs::perms::owner_write, fs::perm_options::add);
  EditConfig({{"num_hidden_layers", 1}, {"attention_window", 32}});
  const Inspection inspection = InspectDirectory(directory_.path());
  EXPECT_TRUE(inspection.servable) << inspection.error;
  EXPECT_NE(inspection.report.find("note:         left aside: "), std::string::npos);
  EXPECT_NE(inspection.report.find("longformer.encoder.layer.1."), std::string::npos)
      << inspection.report;
  const auto model = LoadModel(directory_.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ((*model)->info().notes.size(), 1u);
  EXPECT_NE(inspection.report.find((*model)->info().notes[0]), std::string::npos);
}

TEST_F(InspectTest, ATaskMayBeChosen) {
  Copy("embeddings/model");
  EXPECT_TRUE(InspectDirectory(directory_.path()).servable);
  const Inspection inspection =
      InspectDirectory(directory_.path(), {.task = Task::kQuestionAnswering});
  EXPECT_NE(inspection.error.find("qa_outputs.weight"), std::string::npos) << inspection.error;
  const auto model = LoadModel(directory_.path(), {.task = Task::kQuestionAnswering});
  EXPECT_EQ(model.status().message(), inspection.error);
  const Inspection none = InspectDirectory(directory_.path(), {.task = Task::kImageFeatures});
  EXPECT_NE(none.error.find("\"task\": \"image-features\""), std::string::npos) << none.error;
}

TEST_F(InspectTest, WithoutAClassTheTensorsTell) {
  Copy("masked_lm/model");
  EditConfig({{"architectures", nullptr}});
  const auto model = LoadModel(directory_.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().architecture, "LongformerForMaskedLM");
  ASSERT_EQ((*model)->info().notes.size(), 1u);
  EXPECT_NE((*model)->info().notes[0].find("taken as LongformerForMaskedLM"), std::string::npos);
  EditConfig({{"model_type", "gpt2"}});
  ExpectRefused("\"gpt2\"");
}

TEST_F(InspectTest, AllProblemsAreReportedAtOnce) {
  directory_.Write("config.json", "{");
  directory_.Write("model.safetensors", "x");
  const Inspection inspection = ExpectRefused("config.json: not valid JSON");
  EXPECT_NE(inspection.report.find("model.safetensors: has 1 bytes"), std::string::npos)
      << inspection.report;
}

}  // namespace
}  // namespace longview::models
