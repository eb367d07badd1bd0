// Words of texts and of code, for a search that goes by words.
#pragma once

#include <libstemmer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace longview::client {

// Calls on_word for each word in order: letters, digits and what is not ASCII, of at least two
// bytes, in lower case (of ASCII letters). Identifiers are cut where an underscore or a capital
// letter begins a word: "parseHTTPHeader_2nd" is parse, http, header, 2nd. The word is valid within
// the call. Thread-safe.
void ForEachWord(std::string_view text, const std::function<void(std::string_view)>& on_word);

// Words of English sentences that say nothing of a text. Thread-safe.
bool IsCommonWord(std::string_view word);

// The stems of a question's words, each once. Without those that are common in sentences or ask
// ("where"), unless there are no others. Thread-safe.
std::vector<std::string> QuestionStems(std::string_view question);

// The English stem of a word in lower case ("admitted", "admits": "admit"), by Snowball.
// Not thread-safe.
class Stemmer {
 public:
  Stemmer();
  std::string Stem(std::string_view word);

 private:
  struct Free {
    void operator()(sb_stemmer* stemmer) const { sb_stemmer_delete(stemmer); }
  };
  std::unique_ptr<sb_stemmer, Free> stemmer_;
};

// A text as a search by words sees it.
struct WordCounts {
  int64_t words = 0;            // Words of the text, without common ones.
  std::vector<int32_t> counts;  // Occurrences of each stem that is looked for.
};

// Counts given stems in many texts; stems each word once. Not thread-safe: one for each thread.
class WordCounter {
 public:
  explicit WordCounter(const std::vector<std::string>& stems);

  // Adds the words of a text to *counts.
  void Count(std::string_view text, WordCounts* counts);

 private:
  int IndexOf(std::string_view word);  // kCommon, kOther, or the stem's.

  size_t stems_;
  Stemmer stemmer_;
  absl::flat_hash_map<std::string, int> of_stem_;
  absl::flat_hash_map<std::string, int> of_word_;  // IndexOf of the words seen before.
};

}  // namespace longview::client
