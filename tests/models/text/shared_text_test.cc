// Pairs that share their first text: the same tokens, and the text is tokenised once.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/text/tokenizer.h"
#include "models/text/tokenizer_ffi/tokenizer_ffi.h"
#include "models/tokenizing.h"
#include "tests/models/text/golden_file.h"

namespace longview::models {
namespace {

Tokenizer Load(const std::string& golden, bool lower_case = false) {
  absl::StatusOr<Tokenizer> tokenizer =
      Tokenizer::Load(TokenizerGolden(golden) / "model", lower_case);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

size_t ReadsOf(const SharedText& shared) {
  const void* kept = shared.Tokens([] { return std::shared_ptr<void>(); });
  return kept == nullptr ? 0 : lvt_shared_text_reads(static_cast<const LvtSharedText*>(kept));
}

std::string RandomWords(std::mt19937& random, size_t words) {
  static const char* const kWords[] = {"window", "Größe",  "a",  "</s>",   "12345", "slides!",
                                       "長い",   "<mask>", "\n", "under_", "x",     "tokenizers"};
  std::string text;
  for (size_t i = 0; i < words; ++i) text += std::string(i > 0 ? " " : "") + kWords[random() % 12];
  return text;
}

// The result as text, so that a difference is printed.
std::string Shown(const absl::StatusOr<EncodeResult>& result) {
  if (!result.ok()) return result.status().ToString();
  std::string text = std::to_string(result->tokens_cut) + (result->counted ? " " : "+ ");
  const Encoding& tokens = result->encoding;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    for (const int64_t value :
         {int64_t{tokens.ids[i]}, int64_t{tokens.type_ids[i]}, int64_t{tokens.offsets[i].begin},
          int64_t{tokens.offsets[i].end}, int64_t{tokens.words[i]}, int64_t{tokens.sequences[i]},
          int64_t{tokens.special_mask[i]}}) {
      text += std::to_string(value) + ",";
    }
    text += " ";
  }
  for (const Encoding& window : result->windows) text += std::to_string(window.ids.size()) + " ";
  return text;
}

EncodeOptions RandomOptions(std::mt19937& random) {
  EncodeOptions options;
  options.add_special_tokens = random() % 4 > 0;
  options.match_special_tokens = random() % 2 > 0;
  options.max_length = static_cast<int>(random() % 3 == 0 ? 0 : random() % 60);
  options.strategy = static_cast<TruncationStrategy>(random() % 3);
  options.cut_left = random() % 2 > 0;
  options.keep_first = random() % 4 == 0 ? 3 : 0;
  options.offsets = random() % 2 > 0 ? OffsetUnit::kBytes : OffsetUnit::kCodePoints;
  options.windows = random() % 8 == 0;
  return options;
}

TEST(SharedText, ThePairsTokensAreThoseOfTextsThatShareNothing) {
  for (const bool lower_case : {false, true}) {
    for (const char* golden : {"roberta_bpe", "bert_wordpiece_uncased"}) {
      const Tokenizer tokenizer = Load(golden, lower_case);
      std::mt19937 random(5);
      int answered = 0;
      for (int round = 0; round < 150; ++round) {
        const EncodeOptions options = RandomOptions(random);
        const std::string query = RandomWords(random, random() % 40);
        const SharedText shared;
        EncodeOptions sharing = options;
        sharing.shared = &shared;
        for (int document = 0; document < 4; ++document) {
          const std::string text = RandomWords(random, random() % 60);
          const auto alone = tokenizer.EncodePair(query, text, options);
          ASSERT_EQ(Shown(tokenizer.EncodePair(query, text, sharing)), Shown(alone));
          answered += alone.ok() ? 1 : 0;
        }
        EXPECT_EQ(ReadsOf(shared), options.windows ? 0u : 1u);
      }
      EXPECT_GT(answered, 200);
    }
  }
}

TEST(SharedText, LongTextsOnEitherSide) {
  const Tokenizer tokenizer = Load("roberta_bpe");
  std::mt19937 random(7);
  std::string piece = RandomWords(random, 2000) + " ", below, above;
  while (below.size() + piece.size() < (size_t{256} << 10)) below += piece;
  above = below + piece;
  ASSERT_GT(above.size(), size_t{256} << 10);
  for (const bool left : {false, true}) {
    EncodeOptions options = {.max_length = 101, .cut_left = left};
    const std::vector<std::pair<std::string, std::string>> pairs = {
        {"a query", above}, {below, above}, {below, piece}, {above, piece}};
    for (const auto& [query, document] : pairs) {
      const SharedText shared;
      EncodeOptions sharing = options;
      sharing.shared = &shared;
      EXPECT_EQ(Shown(tokenizer.EncodePair(query, document, sharing)),
                Shown(tokenizer.EncodePair(query, document, options)));
      // A text that is read in pieces is read no farther than truncation leaves.
      EXPECT_EQ(ReadsOf(shared), query == above ? 0u : 1u);
    }
  }
}

TEST(SharedText, ALongQueryIsTokenisedOnceForAllDocumentsAndThreads) {
  const Tokenizer tokenizer = Load("roberta_bpe");
  std::mt19937 random(9);
  const std::string query = RandomWords(random, 20000);
  const SharedText shared;
  const EncodeOptions options = {.max_length = 128, .shared = &shared};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int document = 0; document < 100; ++document) {
        EXPECT_TRUE(tokenizer.EncodePair(query, std::to_string(document), options).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadsOf(shared), 1u);
}

// Prints what sharing saves; asserts no times.
TEST(SharedText, WhatAListSaves) {
  const Tokenizer tokenizer = Load("roberta_bpe");
  std::mt19937 random(11);
  constexpr int kDocuments = 100;
  for (const size_t query_words : {20u, 500u, 20000u}) {
    const std::string query = RandomWords(random, query_words);
    const std::string document = RandomWords(random, 200);
    double seconds[2] = {};
    for (const bool sharing : {false, true}) {
      const SharedText shared;
      const EncodeOptions options = {.max_length = 512, .shared = sharing ? &shared : nullptr};
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kDocuments; ++i) {
        ASSERT_TRUE(tokenizer.EncodePair(query, document, options).ok());
      }
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      seconds[sharing ? 1 : 0] = taken.count();
    }
    std::printf("%d documents of %zu bytes, a query of %zu: %.4f s, shared %.4f s\n", kDocuments,
                document.size(), query.size(), seconds[0], seconds[1]);
  }
}

TEST(SharedText, AnotherTextOrOtherOptionsAreReadAnew) {
  const Tokenizer tokenizer = Load("roberta_bpe");
  const Tokenizer other = Load("bert_wordpiece_uncased");
  const SharedText shared;
  const EncodeOptions options = {.max_length = 16, .shared = &shared};
  EncodeOptions left = options;
  left.cut_left = true;
  const EncodeOptions plain = {.max_length = 16};
  const std::string text = "one two three four five six seven eight nine ten eleven twelve";
  EXPECT_EQ(Shown(tokenizer.EncodePair(text, "b", options)),
            Shown(tokenizer.EncodePair(text, "b", plain)));
  EXPECT_EQ(Shown(tokenizer.EncodePair(text + "!", "b", options)),
            Shown(tokenizer.EncodePair(text + "!", "b", plain)));
  EXPECT_EQ(Shown(other.EncodePair(text, "b", options)), Shown(other.EncodePair(text, "b", plain)));
  EXPECT_NE(Shown(tokenizer.EncodePair(text, "b", left)),
            Shown(tokenizer.EncodePair(text, "b", options)));
  EXPECT_FALSE(tokenizer.EncodePair("\xff", "b", options).ok());
}

}  // namespace
}  // namespace longview::models
