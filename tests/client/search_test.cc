// The parts of `longview search`: which files are read, where they are cut, what is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "client/cli/search/best_places.h"
#include "client/cli/search/chunks.h"
#include "client/cli/search/walk.h"
#include "tests/client/test_folder.h"

namespace longview::client {
namespace {

namespace fs = std::filesystem;

class WalkTest : public TestFolder {
 protected:
  std::vector<std::string> Relative(const std::vector<std::string>& paths) {
    std::vector<std::string> names;
    for (const std::string& path : paths) names.push_back(fs::relative(path, root_).string());
    return names;
  }
};

TEST_F(WalkTest, WhatPeopleWroteIsFound) {
  Write(".gitignore", "*.log\n/gen/\n");
  Write("src/.gitignore", "!kept.log\nlocal.txt\n");
  for (const char* name :
       {"a.c", "b.log", "gen/x.c", "src/gen/y.c", "src/kept.log", "src/local.txt", "local.txt",
        "node_modules/m.js", "env/pyvenv.cfg", "env/lib.py", "out/CMakeCache.txt", "out/z.c",
        "target/CACHEDIR.TAG", "target/t.rs", ".git/config"}) {
    Write(name, "text\n");
  }
  Write("large.txt", std::string(5000, 'x'));
  fs::create_directory_symlink(root_, root_ / "src" / "loop");
  const FoundFiles found = FindFiles({root_.string()}, 4096);
  EXPECT_EQ(Relative(found.paths),
            (std::vector<std::string>{"a.c", "local.txt", "src/gen/y.c", "src/kept.log"}));
  EXPECT_EQ(Relative(found.too_large), std::vector<std::string>{"large.txt"});
}

TEST_F(WalkTest, WhatIsNamedIsRead) {
  Write(".gitignore", "b.log\n");
  Write("b.log", "text\n");
  Write("build/CMakeCache.txt", "text\n");
  Write("build/notes.txt", "text\n");
  const FoundFiles found = FindFiles(
      {(root_ / "b.log").string(), (root_ / "build").string(), (root_ / "missing").string()}, 4096);
  EXPECT_EQ(Relative(found.paths), (std::vector<std::string>{"b.log", "build/CMakeCache.txt",
                                                             "build/notes.txt", "missing"}));
}

std::string Lines(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line + "\n";
  return text;
}

TEST(Chunks, DefinitionsStayWhole) {
  const std::string body = Lines(10, "  statement of the first function();");
  const std::string text =
      "int First() {\n" + body + "\n" + body + "}\n\nint Second() {\n" + body + "}\n";
  const std::vector<Chunk> chunks = CutIntoChunks(text);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].first_line, 1);
  EXPECT_EQ(chunks[0].last_line, 22) << "the closing brace alone has no words";
  EXPECT_EQ(chunks[1].first_line, 25);
  EXPECT_EQ(chunks[1].last_line, 35);
  EXPECT_EQ(text.substr(chunks[1].begin, 12), "int Second()");
}

TEST(Chunks, EveryWordIsInOneChunkOfBoundedSize) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += (i % 7 == 0 ? "\n" : "") + std::string(i % 5, ' ') + "word" + std::to_string(i) +
            std::string(i % 90, '-') + "\n";
  }
  size_t at = 0;
  int line = 0;
  for (const Chunk& chunk : CutIntoChunks(text)) {
    EXPECT_EQ(text.substr(at, chunk.begin - at).find("word"), std::string::npos);
    EXPECT_GT(chunk.first_line, line);
    EXPECT_LE(chunk.end - chunk.begin, 1600u);
    EXPECT_EQ(std::ranges::count(text.substr(0, chunk.begin), '\n') + 1, chunk.first_line);
    EXPECT_EQ(std::ranges::count(text.substr(0, chunk.end), '\n') + 1, chunk.last_line);
    at = chunk.end;
    line = chunk.last_line;
  }
  EXPECT_EQ(text.substr(at).find("word"), std::string::npos);
}

TEST(Chunks, OddTexts) {
  EXPECT_TRUE(CutIntoChunks("").empty());
  EXPECT_TRUE(CutIntoChunks("\n \n----\n}\n").empty());
  const std::string long_line(10000, 'x');
  const std::vector<Chunk> chunks = CutIntoChunks("a\n" + long_line + "\nb");
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[1].end - chunks[1].begin, 10000u);
  EXPECT_EQ(chunks[2].last_line, 3);
}

TEST(BestPlaces, TheSameWhateverTheOrder) {
  const auto place = [](double score, const std::string& path, int line) {
    return Place{score, path, {.first_line = line, .last_line = line}};
  };
  const std::vector<Place> places = {place(0.5, "b", 1), place(0.5, "a", 9), place(0.5, "a", 3),
                                     place(0.9, "z", 1), place(0.1, "a", 1)};
  for (const bool backwards : {false, true}) {
    BestPlaces best(3);
    for (size_t i = 0; i < places.size(); ++i) {
      const Place& place = places[backwards ? places.size() - 1 - i : i];
      if (best.MayKeep(place.score)) best.Add(place);
    }
    EXPECT_FALSE(best.MayKeep(0.4));
    const std::vector<Place> taken = best.Take();
    ASSERT_EQ(taken.size(), 3u);
    EXPECT_EQ(taken[0].path, "z");
    EXPECT_EQ(taken[1].chunk.first_line, 3);
    EXPECT_EQ(taken[2].chunk.first_line, 9);
  }
}

}  // namespace
}  // namespace longview::client
