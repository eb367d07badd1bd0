#include "server/store/hub_cache.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/temp_directory.h"

namespace longview::server {
namespace {

TEST(HubModelTest, ReadsNamesAndRevisions) {
  const auto model = ParseHubModel("BAAI/bge-m3");
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->id(), "BAAI/bge-m3");
  EXPECT_EQ(model->revision, "");
  EXPECT_EQ(ParseHubModel("a/b.c_d@refs/pr/7")->revision, "refs/pr/7");
  for (const char* other : {"", "name", "/org/name", "./org", "../name", "a/b/c", "a/b/", "a/",
                            "a b/c", "a/b@", "a/b@..", "a/b@main/../..", "name@main"}) {
    EXPECT_FALSE(ParseHubModel(other).has_value()) << other;
  }
}

class HubCacheTest : public ::testing::Test {
 protected:
  // The snapshot's path below the folder, or the error.
  std::string Find(const std::string& name) {
    const auto found = FindSnapshot(*ParseHubModel(name), temp_.path());
    if (!found.ok()) return std::string(found.status().message());
    return std::filesystem::path(*found).lexically_relative(temp_.path()).string();
  }

  testing::TempDirectory temp_;
};

TEST_F(HubCacheTest, FollowsRefsAndLinks) {
  const std::string folder = "models--org--name/";
  temp_.Write(folder + "blobs/abc", "{}");
  temp_.Write(folder + "refs/main", "1111");
  temp_.Write(folder + "refs/refs/pr/7", "2222");
  for (const char* commit : {"1111", "2222"}) {
    const std::string snapshot = temp_.Path(folder + "snapshots/" + commit);
    std::filesystem::create_directories(snapshot);
    std::filesystem::create_symlink("../../blobs/abc", snapshot + "/config.json");
  }
  EXPECT_EQ(Find("org/name"), folder + "snapshots/1111");
  EXPECT_EQ(Find("org/name@main"), folder + "snapshots/1111");
  EXPECT_EQ(Find("org/name@refs/pr/7"), folder + "snapshots/2222");
  EXPECT_EQ(Find("org/name@2222"), folder + "snapshots/2222");
}

TEST_F(HubCacheTest, SaysHowToGetWhatIsNotThere) {
  const std::string missing = Find("org/name@v1");
  EXPECT_NE(missing.find("no such path"), std::string::npos) << missing;
  EXPECT_NE(missing.find(temp_.path()), std::string::npos) << missing;
  EXPECT_TRUE(missing.ends_with("hf download org/name --revision v1")) << missing;

  const std::string folder = "models--org--name/";
  temp_.Write(folder + "refs/main", "1111");
  temp_.Write(folder + "refs/lost", "3333");
  std::filesystem::create_directories(temp_.Path(folder + "snapshots/1111"));
  const std::string other = Find("org/name@v1");
  EXPECT_NE(other.find("has no revision v1 of it, but main;"), std::string::npos) << other;
  // The link of a blob that was not fetched to its end.
  std::filesystem::create_symlink("../../blobs/abc",
                                  temp_.Path(folder + "snapshots/1111/config.json"));
  const std::string broken = Find("org/name");
  EXPECT_NE(broken.find("has no config.json"), std::string::npos) << broken;
  EXPECT_TRUE(broken.ends_with("hf download org/name")) << broken;
}

TEST(HubCacheFolderTest, GoesByTheVariablesOfTheHub) {
  for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}) unsetenv(name);
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  setenv("HOME", "/h", 1);
  EXPECT_EQ(HubCacheFolder(), "/h/.cache/huggingface/hub");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(HubCacheFolder(), "/x/huggingface/hub");
  setenv("HF_HOME", "/f", 1);
  EXPECT_EQ(HubCacheFolder(), "/f/hub");
  setenv("HF_HUB_CACHE", "/c", 1);
  EXPECT_EQ(HubCacheFolder(), "/c");
  for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}) unsetenv(name);
  setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace longview::server
