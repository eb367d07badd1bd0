#include "models/directory/model_directory.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

namespace fs = std::filesystem;
using Code = absl::StatusCode;

fs::path Golden(const std::string& name) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return fs::path(root ? root : LONGVIEW_GOLDEN_DIR) / "longformer" / name;
}

class ModelDirectoryTest : public ::testing::Test {
 protected:
  // A writable copy of a golden model.
  void Copy(const std::string& golden) {
    for (const auto& entry : fs::directory_iterator(Golden(golden))) {
      fs::copy_file(entry.path(), directory_.Path(entry.path().filename().string()));
      fs::permissions(directory_.Path(entry.path().filename().string()), fs::perms::owner_write,
                      fs::perm_options::add);
    }
  }

  void ExpectRefused(Code code, const std::string& part) {
    const auto opened = OpenModelDirectory(directory_.path());
    ASSERT_FALSE(opened.ok()) << part;
    EXPECT_EQ(opened.status().code(), code) << opened.status();
    EXPECT_NE(opened.status().message().find(part), std::string::npos) << opened.status();
  }

  testing::TempDirectory directory_;
};

TEST_F(ModelDirectoryTest, OpensWhatHuggingFaceWrote) {
  const auto opened = OpenModelDirectory(Golden("text_classification/model").string());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->common.architecture, "LongformerForSequenceClassification");
  EXPECT_EQ(opened->common.labels.size(), 5u);
  EXPECT_EQ(opened->config["hidden_size"], 32);
  EXPECT_NE(opened->checkpoint.Find("classifier.out_proj.weight"), nullptr);
  ASSERT_TRUE(opened->tokenizer.has_value());
  EXPECT_EQ(opened->tokenizer->model_max_length(), 512);
}

TEST_F(ModelDirectoryTest, WithoutTokenizerThereIsNone) {
  const auto opened = OpenModelDirectory(Golden("classification/model").string());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_FALSE(opened->tokenizer.has_value());
}

TEST_F(ModelDirectoryTest, LabelsMayBeRenamedNotCounted) {
  Copy("classification/model");
  directory_.Write("longview.json", R"({"labels": ["v", "w", "x", "y", "z"]})");
  const auto opened = OpenModelDirectory(directory_.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->common.labels[4], "z");
  directory_.Write("longview.json", R"({"labels": ["v", "w"]})");
  ExpectRefused(Code::kInvalidArgument, "expected 5 names as in config.json, found 2");
}

TEST_F(ModelDirectoryTest, EveryBrokenFileIsNamed) {
  ExpectRefused(Code::kNotFound, "config.json");
  Copy("text_classification/model");
  ASSERT_TRUE(OpenModelDirectory(directory_.path()).ok());
  for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json",
                           "special_tokens_map.json", "longview.json"}) {
    const bool existed = fs::exists(directory_.Path(file));
    const std::string saved = directory_.Path("saved");
    if (existed) fs::rename(directory_.Path(file), saved);
    directory_.Write(file, "{\"broken");
    ExpectRefused(Code::kInvalidArgument, std::string(file) + ": not valid JSON");
    fs::remove(directory_.Path(file));
    if (existed) fs::rename(saved, directory_.Path(file));
  }
  fs::resize_file(directory_.Path("model.safetensors"),
                  fs::file_size(directory_.Path("model.safetensors")) - 1);
  ExpectRefused(Code::kInvalidArgument, "model.safetensors");
  fs::remove(directory_.Path("model.safetensors"));
  ExpectRefused(Code::kNotFound, "no weights");
}

// Only embeddings need the modules of sentence-transformers; other tasks go on without them.
TEST_F(ModelDirectoryTest, BrokenModulesAreReportedNotRefused) {
  Copy("text_classification/model");
  for (const char* file : {"modules.json", "1_Pooling/config.json"}) {
    directory_.Write(file, "{\"broken");
    const auto opened = OpenModelDirectory(directory_.path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_NE(
        opened->sentence.modules.status().message().find(std::string(file) + ": not valid JSON"),
        std::string::npos)
        << opened->sentence.modules.status();
    fs::remove(directory_.Path(file));
  }
}

TEST_F(ModelDirectoryTest, PickledWeightsAreOpened) {
  for (const char* form : {"checkpoint_forms/model_bin_zip", "checkpoint_forms/model_bin_legacy"}) {
    const auto opened = OpenModelDirectory(Golden(form).string());
    EXPECT_TRUE(opened.ok()) << opened.status();
  }
}

TEST_F(ModelDirectoryTest, MissingDirectory) {
  EXPECT_EQ(OpenModelDirectory(directory_.Path("absent")).status().message(),
            directory_.Path("absent") + ": no such directory");
}

}  // namespace
}  // namespace longview::models
