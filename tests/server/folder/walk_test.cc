#include "server/folder/walk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/folder/ignore_rules.h"

namespace longview::server {
namespace {

namespace fs = std::filesystem;

// The cases of tests/client/search_test.cc.
TEST(IgnoreRules, NamesAnchorsFoldersAndStars) {
  const IgnoreRules rules = IgnoreRules::Parse(
      "# build outputs\n*.o\n/dist\nout/\ndocs/*.html\n**/cache/*.bin\nlogs/**\n!keep.o\r\n\n");
  EXPECT_EQ(rules.Ignores("a/b/x.o", false), true);
  EXPECT_EQ(rules.Ignores("a/keep.o", false), false) << "the last rule decides";
  EXPECT_EQ(rules.Ignores("dist", true), true);
  EXPECT_EQ(rules.Ignores("src/dist", true), std::nullopt) << "anchored at the top";
  EXPECT_EQ(rules.Ignores("src/out", true), true);
  EXPECT_EQ(rules.Ignores("src/out", false), std::nullopt) << "folders only";
  EXPECT_EQ(rules.Ignores("docs/index.html", false), true);
  EXPECT_EQ(rules.Ignores("docs/api/index.html", false), std::nullopt);
  EXPECT_EQ(rules.Ignores("a/b/cache/x.bin", false), true);
  EXPECT_EQ(rules.Ignores("cache/x.bin", false), true);
  EXPECT_EQ(rules.Ignores("logs", true), std::nullopt);
  EXPECT_EQ(rules.Ignores("logs/today/a", false), true);
  EXPECT_EQ(rules.Ignores("# build outputs", false), std::nullopt);
}

TEST(IgnoreRules, ARuleOfManyStarsCostsNothing) {
  std::string rule, path = "a";
  for (int i = 0; i < 40; ++i) {
    rule += "**/a/";
    path += "/a";
  }
  EXPECT_EQ(IgnoreRules::Parse(rule + "b").Ignores(path, false), std::nullopt);
}

class WalkFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string(test->name()) + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& content = "text\n") {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << content;
  }

  WalkedFiles Found(const WalkLimits& limits = {.files = 100, .file_bytes = 4096}) {
    return WalkFolder(root_.string(), limits);
  }

  static std::vector<std::string> Paths(const WalkedFiles& found) {
    std::vector<std::string> paths;
    for (const WalkedFiles::File& file : found.files) paths.push_back(file.path);
    return paths;
  }

  fs::path root_;
};

TEST_F(WalkFolderTest, WhatPeopleWroteIsFound) {
  Write(".gitignore", "*.log\n/gen/\n");
  Write("src/.gitignore", "!kept.log\nlocal.txt\n");
  for (const char* name :
       {"a.c", "b.log", "gen/x.c", "src/gen/y.c", "src/kept.log", "src/local.txt", "local.txt",
        "node_modules/m.js", "env/pyvenv.cfg", "env/lib.py", "out/CMakeCache.txt", "out/z.c",
        "target/CACHEDIR.TAG", "target/t.rs", ".git/config"}) {
    Write(name);
  }
  const WalkedFiles found = Found();
  EXPECT_EQ(Paths(found),
            (std::vector<std::string>{"a.c", "local.txt", "src/gen/y.c", "src/kept.log"}));
  EXPECT_EQ(found.files[0].bytes, 5u);
  EXPECT_FALSE(found.more || found.unreadable);
}

TEST_F(WalkFolderTest, NoLinkIsFollowed) {
  Write("own/a.txt");
  fs::create_symlink(root_ / "own/a.txt", root_ / "link.txt");
  fs::create_directory_symlink(root_, root_ / "own/loop");
  EXPECT_EQ(Paths(Found()), std::vector<std::string>{"own/a.txt"});
}

TEST_F(WalkFolderTest, WhatNeverEndsIsNotRead) {
  Write("a.txt");
  ASSERT_EQ(mkfifo((root_ / ".gitignore").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(Paths(Found()), std::vector<std::string>{"a.txt"});
}

TEST_F(WalkFolderTest, LimitsSayThatThereIsMore) {
  for (const char* name : {"a/1.txt", "a/2.txt", "b.txt"}) Write(name);
  EXPECT_FALSE(Found({.files = 3, .file_bytes = 5}).more);
  const WalkedFiles two = Found({.files = 2, .file_bytes = 5});
  EXPECT_EQ(Paths(two), (std::vector<std::string>{"a/1.txt", "a/2.txt"}));
  EXPECT_TRUE(two.more);
  const WalkedFiles small = Found({.files = 3, .file_bytes = 4});
  EXPECT_TRUE(small.files.empty() && small.more);
  const WalkedFiles few = Found({.files = 3, .file_bytes = 5, .entries = 3});
  EXPECT_TRUE(few.files.size() < 3 && few.more) << "of two folders with four entries";
}

TEST_F(WalkFolderTest, AFolderThatIsGoneIsUnreadable) {
  fs::remove_all(root_);
  EXPECT_TRUE(Found().unreadable);
}

}  // namespace
}  // namespace longview::server
