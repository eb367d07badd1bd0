#include "server/store/model_paths.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/temp_directory.h"

namespace longview::server {
namespace {

class ModelPathsTest : public ::testing::Test {
 protected:
  // Each as name:version.
  std::vector<std::string> Names(const std::vector<std::string>& paths) {
    skipped_.clear();
    std::vector<SkippedDirectory> skipped;
    const auto found = FindModels(paths, skipped);
    for (const SkippedDirectory& each : skipped) {
      skipped_.push_back(each.directory + ": " + each.reason);
    }
    error_ = found.status();
    std::vector<std::string> names;
    if (!found.ok()) return names;
    for (const FoundModel& model : *found) names.push_back(model.name + ":" + model.version);
    return names;
  }
  std::string Message() const { return std::string(error_.message()); }

  testing::TempDirectory temp_;
  std::vector<std::string> skipped_;
  absl::Status error_;
};

using Strings = std::vector<std::string>;

TEST_F(ModelPathsTest, ModelDirectoryIsNamedByItsBaseName) {
  temp_.Write("one/config.json", "{}");
  EXPECT_EQ(Names({temp_.Path("one")}), Strings({"one:1"}));
  EXPECT_EQ(Names({temp_.Path("one/")}), Strings({"one:1"}));
  EXPECT_EQ(Names({temp_.Path("one/.")}), Strings({"one:1"}));
}

TEST_F(ModelPathsTest, DirectoryOfModelsWithAndWithoutVersions) {
  temp_.Write("repo/b/config.json", "{}");
  temp_.Write("repo/a/2/config.json", "{}");
  temp_.Write("repo/a/10/config.json", "{}");
  temp_.Write("repo/a/11/weights.bin", "");  // No config.json.
  temp_.Write("repo/a/draft/config.json", "{}");
  temp_.Write("repo/samples/page.jpg", "");  // Neither configuration nor weights: no model.
  temp_.Write("repo/lost/model.safetensors", "");
  temp_.Write("repo/.git/config.json", "{}");
  temp_.Write("repo/file", "");
  EXPECT_EQ(Names({temp_.Path("repo")}), Strings({"a:10", "b:1"}));
  EXPECT_EQ(skipped_, Strings({temp_.Path("repo/lost") + ": no config.json"}));
}

TEST_F(ModelPathsTest, VersionsBelowThePathItself) {
  temp_.Write("m/1/config.json", "{}");
  temp_.Write("m/3/config.json", "{}");
  EXPECT_EQ(Names({temp_.Path("m")}), Strings({"m:3"}));
}

TEST_F(ModelPathsTest, NamedPaths) {
  temp_.Write("one/config.json", "{}");
  temp_.Write("versions/7/config.json", "{}");
  EXPECT_EQ(Names({"x=" + temp_.Path("one"), "y=" + temp_.Path("versions")}),
            Strings({"x:1", "y:7"}));
}

TEST_F(ModelPathsTest, NamesWithAnOrganisation) {
  temp_.Write("one/config.json", "{}");
  EXPECT_EQ(Names({"BAAI/bge-m3=" + temp_.Path("one")}), Strings({"BAAI/bge-m3:1"}));
  Names({"a/b/c=" + temp_.Path("one")});
  EXPECT_FALSE(error_.ok());
}

TEST_F(ModelPathsTest, TheModelOfAPackageLiesOneFolderDown) {
  temp_.Write("package/__init__.py", "");
  temp_.Write("package/1_Pooling/config.json", "{}");
  temp_.Write("package/onnx/config.json", "{}");
  temp_.Write("package/model/config.json", "{}");
  temp_.Write("package/model/model.safetensors", "");
  EXPECT_EQ(Names({"m=" + temp_.Path("package")}), Strings({"m:1"}));
  EXPECT_EQ(*ResolveModelPath(temp_.Path("package")), temp_.Path("package/model"));
  EXPECT_EQ(Names({temp_.path()}), Strings({"package:1"}));
  temp_.Write("package/other/config.json", "{}");
  temp_.Write("package/other/model.safetensors", "");
  Names({"m=" + temp_.Path("package")});
  EXPECT_NE(Message().find("name one of its folders, such as " + temp_.Path("package/model")),
            std::string::npos)
      << Message();
}

TEST_F(ModelPathsTest, FoldersOfTheHubsCache) {
  temp_.Write("hub/models--org--name/refs/main", "c0ffee");
  temp_.Write("hub/models--org--name/snapshots/c0ffee/config.json", "{}");
  temp_.Write("hub/models--org--half/refs/main", "c0ffee");
  const std::string folder = temp_.Path("hub/models--org--name");
  EXPECT_EQ(Names({folder}), Strings({"org/name:1"}));
  EXPECT_EQ(Names({"x=" + folder + "/"}), Strings({"x:1"}));
  EXPECT_EQ(*ResolveModelPath(folder), folder + "/snapshots/c0ffee");
  EXPECT_EQ(Names({temp_.Path("hub")}), Strings({"org/name:1"}));
  const std::string lacks = "org/half: the hub's cache has no revision main of it";
  ASSERT_EQ(skipped_.size(), 1u);
  EXPECT_TRUE(skipped_[0].starts_with(temp_.Path("hub/models--org--half") + ": " + lacks))
      << skipped_[0];
  Names({temp_.Path("hub/models--org--half")});
  EXPECT_NE(Message().find(lacks), std::string::npos) << Message();
  EXPECT_NE(ResolveModelPath(temp_.Path("hub/models--org--half")).status().message().find(lacks),
            std::string::npos);
}

TEST_F(ModelPathsTest, SnapshotsOfTheHubsCacheAreCalledAsTheirModel) {
  temp_.Write("hub/models--org--name/refs/main", "c0ffee");
  temp_.Write("hub/models--org--name/snapshots/c0ffee/config.json", "{}");
  temp_.Write("hub/models--org--name/snapshots/bad1dea/config.json", "{}");
  const std::string snapshots = temp_.Path("hub/models--org--name/snapshots");
  EXPECT_EQ(Names({snapshots + "/bad1dea/"}), Strings({"org/name:1"}));
  EXPECT_EQ(Names({snapshots}), Strings({"org/name:1"}));
  EXPECT_EQ(*ResolveModelPath(snapshots), snapshots + "/c0ffee");
  EXPECT_EQ(*ResolveModelPath(snapshots + "/bad1dea"), snapshots + "/bad1dea");
}

TEST_F(ModelPathsTest, TheHubsOldestModelsHaveNoOrganisation) {
  temp_.Write("hub/models--bert-base-uncased/refs/main", "c0ffee");
  temp_.Write("hub/models--bert-base-uncased/snapshots/c0ffee/config.json", "{}");
  EXPECT_EQ(Names({temp_.Path("hub/models--bert-base-uncased")}), Strings({"bert-base-uncased:1"}));
}

TEST_F(ModelPathsTest, OldSentenceTransformersNeedNoConfigOfTheirOwn) {
  temp_.Write("old/modules.json", "[]");
  temp_.Write("old/0_Transformer/config.json", "{}");
  EXPECT_EQ(Names({temp_.Path("old")}), Strings({"old:1"}));
}

TEST_F(ModelPathsTest, LinksAreFollowedAndLendTheirName) {
  temp_.Write("elsewhere/snapshot/config.json", "{}");
  std::filesystem::create_directories(temp_.Path("repo"));
  std::filesystem::create_directory_symlink(temp_.Path("elsewhere/snapshot"),
                                            temp_.Path("repo/linked"));
  std::filesystem::create_directory_symlink("/nowhere", temp_.Path("repo/dangling"));
  EXPECT_EQ(Names({temp_.Path("repo")}), Strings({"linked:1"}));
  EXPECT_EQ(Names({temp_.Path("repo/linked")}), Strings({"linked:1"}));
}

TEST_F(ModelPathsTest, ErrorsNameThePath) {
  temp_.Write("file", "");
  temp_.Write("empty/readme.md", "");
  Names({temp_.Path("missing")});
  EXPECT_EQ(error_.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Message().find(temp_.Path("missing")), std::string::npos);
  Names({temp_.Path("file")});
  EXPECT_EQ(error_.code(), absl::StatusCode::kInvalidArgument);
  Names({temp_.Path("empty")});
  EXPECT_EQ(error_.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Message().find("config.json"), std::string::npos);
}

TEST_F(ModelPathsTest, ADirectoryWinsOverTheHub) {
  temp_.Write("cache/models--org--name/refs/main", "c0ffee\n");
  temp_.Write("cache/models--org--name/snapshots/c0ffee/config.json", "{}");
  setenv("HF_HUB_CACHE", temp_.Path("cache").c_str(), 1);
  EXPECT_EQ(Names({"org/name"}), Strings({"org/name:1"}));
  EXPECT_EQ(Names({"mine=org/name"}), Strings({"mine:1"}));
  EXPECT_EQ(*ResolveModelPath("org/name"), temp_.Path("cache/models--org--name/snapshots/c0ffee"));
  Names({"org/other"});
  EXPECT_NE(Message().find("hf download org/other"), std::string::npos) << Message();

  const std::filesystem::path before = std::filesystem::current_path();
  temp_.Write("org/name/2/config.json", "{}");
  std::filesystem::current_path(temp_.path());
  EXPECT_EQ(Names({"org/name"}), Strings({"name:2"}));
  std::filesystem::current_path(before);
  unsetenv("HF_HUB_CACHE");
}

TEST_F(ModelPathsTest, BadAndDoubleNamesAreErrors) {
  temp_.Write("repo/bad name/config.json", "{}");
  temp_.Write("mixed/bad name/config.json", "{}");
  temp_.Write("mixed/good/config.json", "{}");
  temp_.Write("a/same/config.json", "{}");
  temp_.Write("b/same/config.json", "{}");
  Names({temp_.Path("repo")});
  EXPECT_EQ(error_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message().find("\"bad name\""), std::string::npos);
  EXPECT_EQ(Names({temp_.Path("mixed")}), Strings({"good:1"}));
  ASSERT_EQ(skipped_.size(), 1u);
  EXPECT_NE(skipped_[0].find("\"bad name\" is not name or org/name"), std::string::npos);
  Log log(LogFormat::kText, LogLevel::kError);
  EXPECT_TRUE(FindModels({temp_.Path("mixed")}, /*strict=*/false, log).ok());
  EXPECT_FALSE(FindModels({temp_.Path("mixed")}, /*strict=*/true, log).ok());
  Names({temp_.Path("mixed/bad name")});
  EXPECT_EQ(error_.code(), absl::StatusCode::kInvalidArgument);
  Names({temp_.Path("a"), temp_.Path("b")});
  EXPECT_EQ(error_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message().find("\"same\""), std::string::npos);
}

TEST(IsModelNameTest, MatchesTheRule) {
  EXPECT_TRUE(IsModelName("aB9._-"));
  EXPECT_TRUE(IsModelName(std::string(128, 'x')));
  EXPECT_FALSE(IsModelName(std::string(129, 'x')));
  EXPECT_FALSE(IsModelName(""));
  EXPECT_TRUE(IsModelName("a/b"));
  for (const char* bad : {"a/b/c", "/b", "a/", "../b", "./b", "a/.b"}) {
    EXPECT_FALSE(IsModelName(bad)) << bad;
  }
  EXPECT_FALSE(IsModelName("ä"));
}

}  // namespace
}  // namespace longview::server
