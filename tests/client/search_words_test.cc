// Words, BM25, z-scores, and the folder of vectors of `longview search`.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "client/cli/search/ranking.h"
#include "client/cli/search/vector_store.h"
#include "client/cli/search/words.h"
#include "tests/client/test_folder.h"

namespace longview::client {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  ForEachWord(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

using Words = std::vector<std::string>;

TEST(Words, IdentifiersAreCut) {
  EXPECT_EQ(WordsOf("parseHTTPHeader_2nd(maxBytes=16, x)"),
            (Words{"parse", "http", "header", "2nd", "max", "bytes", "16"}));
  EXPECT_EQ(WordsOf("std::vector<int64_t> kMaxValue;"),
            (Words{"std", "vector", "int64", "max", "value"}));
  EXPECT_EQ(WordsOf("sha256Sum utf8"), (Words{"sha256", "sum", "utf8"}));
  EXPECT_EQ(WordsOf(""), Words{});
  EXPECT_EQ(WordsOf("_ - ** 7 x"), Words{});
}

TEST(Words, OtherScriptsAreWordsAndTheirPunctuationIsNot) {
  EXPECT_EQ(WordsOf("Größe — naïve…長い文書、窓"), (Words{"größe", "naïve", "長い文書", "窓"}));
  EXPECT_EQ(WordsOf("a\xC2\xA0word"), Words{"word"});
  // Bytes that end in the middle of a character.
  EXPECT_EQ(WordsOf("ab\xE9\x95").size(), 1u);
  EXPECT_EQ(WordsOf("\xF0").size(), 0u);
}

TEST(Words, StemsOfAQuestion) {
  EXPECT_EQ(QuestionStems("Where are the refused requests repeated?"),
            (Words{"refus", "request", "repeat"}));
  EXPECT_EQ(QuestionStems("requests REQUEST requested"), Words{"request"});
  EXPECT_EQ(QuestionStems("who is this"), (Words{"who", "is", "this"})) << "nothing else is there";
  EXPECT_EQ(QuestionStems("?"), Words{});
}

TEST(Words, Counts) {
  WordCounter counter({"request", "refus"});
  WordCounts counts;
  counter.Count("the request of RefusedRequests was refused", &counts);
  EXPECT_EQ(counts.counts, (std::vector<int32_t>{2, 2}));
  EXPECT_EQ(counts.words, 4) << "the, of and was are common";
  counter.Count("request", &counts);
  EXPECT_EQ(counts.counts[0], 3) << "counts are added";
  WordCounts data;
  counter.Count(std::string(1 << 20, 'x') + " " + std::string(1 << 20, '7'), &data);
  EXPECT_EQ(data.words, 2);
}

// Lucene's formula, written out.
TEST(Bm25, IsLucenes) {
  const std::vector<WordCounts> passages = {{10, {2, 0}}, {30, {1, 3}}, {20, {0, 0}}};
  const std::vector<double> scores = Bm25Scores(passages);
  const double first = std::log(1 + (3 - 2 + 0.5) / (2 + 0.5));
  const double second = std::log(1 + (3 - 1 + 0.5) / (1 + 0.5));
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_NEAR(scores[0], first * 2 / (2 + 1.5 * (0.25 + 0.75 * 0.5)), 1e-12);
  EXPECT_NEAR(
      scores[1],
      first * 1 / (1 + 1.5 * (0.25 + 0.75 * 1.5)) + second * 3 / (3 + 1.5 * (0.25 + 0.75 * 1.5)),
      1e-12);
  EXPECT_EQ(scores[2], 0);
}

TEST(Bm25, NothingToCount) {
  EXPECT_TRUE(Bm25Scores({}).empty());
  const std::vector<WordCounts> empty(3);
  EXPECT_EQ(Bm25Scores(empty), (std::vector<double>{0, 0, 0}));
}

TEST(ZScores, AreSummedAndAListOfEqualScoresAddsNothing) {
  const std::vector<double> some = {1, 2, 3}, equal = {7, 7, 7};
  const double one = std::sqrt(1.5);
  const std::vector<double> sums = SumOfZScores(some, equal);
  EXPECT_NEAR(sums[0], -one, 1e-12);
  EXPECT_NEAR(sums[1], 0, 1e-12);
  EXPECT_NEAR(sums[2], one, 1e-12);
  const std::vector<double> scaled = {100, 300, 200};
  EXPECT_NEAR(SumOfZScores(some, scaled)[1], one, 1e-12);
  EXPECT_TRUE(SumOfZScores({}, {}).empty());
}

class VectorStoreTest : public TestFolder {
 protected:
  std::string Folder() const { return (root_ / "deep" / "folder").string(); }

  size_t Files() const {
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(Folder())) {
      files += entry.is_regular_file() && entry.path().filename() != "CACHEDIR.TAG" ? 1 : 0;
    }
    return files;
  }
};

TEST_F(VectorStoreTest, WhatIsKeptIsFound) {
  const VectorStore store(Folder(), 1 << 20);
  const std::string key = VectorStore::KeyOf("model", "text");
  EXPECT_NE(key, VectorStore::KeyOf("modelt", "ext"));
  EXPECT_NE(key, VectorStore::KeyOf("text", "model"));
  EXPECT_EQ(store.Find(key, 2), std::nullopt);
  const std::vector<float> vectors = {1, -2, 3.5f, 0, 1e-30f, 6};
  ASSERT_TRUE(store.Keep(key, 2, vectors).ok());
  EXPECT_EQ(store.Find(key, 2), vectors);
  EXPECT_EQ(store.Find(key, 3), std::nullopt) << "cut otherwise";
  EXPECT_EQ(store.Find(VectorStore::KeyOf("model", "other"), 2), std::nullopt);
}

TEST_F(VectorStoreTest, TheLeastRecentlyUsedGoFirst) {
  const std::vector<float> vectors(1000, 1.0f);
  const VectorStore store(Folder(), 3 * 4500);
  std::vector<std::string> keys;
  for (int i = 0; i < 5; ++i) {
    keys.push_back(VectorStore::KeyOf("model", std::to_string(i)));
    ASSERT_TRUE(store.Keep(keys.back(), 10, vectors).ok());
    const fs::path path = fs::path(Folder()) / keys[i].substr(0, 2) / keys[i].substr(2);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  EXPECT_TRUE(store.Find(keys[0], 10));  // Makes the oldest the youngest.
  store.Trim();
  EXPECT_EQ(Files(), 3u);
  EXPECT_TRUE(store.Find(keys[0], 10));
  EXPECT_FALSE(store.Find(keys[1], 10));
  EXPECT_FALSE(store.Find(keys[2], 10));
  EXPECT_TRUE(store.Find(keys[4], 10));
}

TEST_F(VectorStoreTest, WhatInterruptedWritersLeftGoesInTime) {
  const VectorStore store(Folder(), 1 << 20);
  ASSERT_TRUE(store.Keep(VectorStore::KeyOf("", ""), 1, std::vector<float>{1}).ok());
  const fs::path bucket = fs::path(Folder()) / VectorStore::KeyOf("", "").substr(0, 2);
  for (const char* name : {".unfinished-new", ".unfinished-old"}) {
    std::ofstream(bucket / name) << "half";
  }
  fs::last_write_time(bucket / ".unfinished-old",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  store.Trim();
  EXPECT_TRUE(fs::exists(bucket / ".unfinished-new"));
  EXPECT_FALSE(fs::exists(bucket / ".unfinished-old"));
}

TEST_F(VectorStoreTest, TwoWritersAndAReaderAtATime) {
  const VectorStore store(Folder(), 1 << 20), other(Folder(), 0);
  const std::string key = VectorStore::KeyOf("model", "text");
  const std::vector<float> vectors(5000, 2.0f);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 100; ++i) {
        if (thread == 0) other.Trim();  // Removes all.
        EXPECT_TRUE(store.Keep(key, 5, vectors).ok());
        const auto found = store.Find(key, 5);
        EXPECT_EQ(found.value_or(vectors), vectors);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.Find(key, 5), vectors);
}

TEST_F(VectorStoreTest, AFolderThatCannotBeMadeIsNamed) {
  const VectorStore store(Write("file", "") + "/below", 1 << 20);
  const std::string key = VectorStore::KeyOf("model", "text");
  const absl::Status status = store.Keep(key, 1, std::vector<float>{1});
  EXPECT_NE(status.message().find("file/below"), std::string::npos) << status;
  EXPECT_EQ(store.Find(key, 1), std::nullopt);
  store.Trim();
  // A directory in the place of a file is no vectors.
  const VectorStore well(Folder(), 1 << 20);
  fs::create_directories(fs::path(Folder()) / key.substr(0, 2) / key.substr(2));
  EXPECT_EQ(well.Find(key, 1), std::nullopt);
  EXPECT_FALSE(well.Keep(key, 1, std::vector<float>{1}).ok());
}

}  // namespace
}  // namespace longview::client
