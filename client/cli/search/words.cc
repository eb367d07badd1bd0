#include "client/cli/search/words.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"

namespace longview::client {
namespace {

constexpr int kCommon = -2, kOther = -1;
constexpr size_t kLongestWord = 64;  // Bytes; longer ones are data.
constexpr size_t kMostKnownWords = size_t{1} << 18;

// Lucene's list of English stop words, sorted for binary search.
constexpr std::string_view kCommonWords[] = {
    "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
    "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
    "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with"};
// Words by which a question asks, sorted for binary search.
constexpr std::string_view kAskingWords[] = {"do",    "does",  "how", "what", "when",
                                             "where", "which", "who", "why"};

template <size_t size>
bool IsAmong(const std::string_view (&words)[size], std::string_view word) {
  return std::binary_search(std::begin(words), std::end(words), word);
}

// The bytes of the character at `at` that is not ASCII, and whether it belongs to a word: spaces,
// dashes, quotes and the like of Latin-1, general and CJK punctuation do not.
size_t CharacterAt(std::string_view text, size_t at, bool* in_word) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0), second = byte(1), third = byte(2);
  *in_word = true;
  if (first < 0xe0) {
    if (first == 0xc2) *in_word = false;
    return 2;
  }
  if (first < 0xf0) {
    const unsigned point = (first & 0xf) << 12 | (second & 0x3f) << 6 | (third & 0x3f);
    *in_word = !(point >= 0x2000 && point < 0x2070) && !(point >= 0x3000 && point < 0x3030);
    return 3;
  }
  return 4;
}

// Whether a capital letter at `at` begins a word within one.
bool BeginsWord(std::string_view text, size_t at) {
  const auto is = [&](size_t i, bool (*kind)(unsigned char)) {
    return i < text.size() && kind(static_cast<unsigned char>(text[i]));
  };
  if (!is(at, absl::ascii_isupper) || at == 0) return false;
  if (is(at - 1, absl::ascii_islower) || is(at - 1, absl::ascii_isdigit)) return true;
  return is(at - 1, absl::ascii_isupper) && is(at + 1, absl::ascii_islower);
}

}  // namespace

void ForEachWord(std::string_view text, const std::function<void(std::string_view)>& on_word) {
  std::string word;
  const auto end_word = [&] {
    if (word.size() >= 2) on_word(word);
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x80) {
      bool in_word = false;
      const size_t size = CharacterAt(text, at, &in_word);
      if (in_word) {
        word += text.substr(at, size);
      } else {
        end_word();
      }
      at += size;
      continue;
    }
    if (!absl::ascii_isalnum(byte) || BeginsWord(text, at)) end_word();
    if (absl::ascii_isalnum(byte)) word.push_back(absl::ascii_tolower(byte));
    ++at;
  }
  end_word();
}

bool IsCommonWord(std::string_view word) { return IsAmong(kCommonWords, word); }

std::vector<std::string> QuestionStems(std::string_view question) {
  std::vector<std::string> all, telling;
  Stemmer stemmer;
  ForEachWord(question, [&](std::string_view word) {
    const std::string stem = stemmer.Stem(word);
    if (std::find(all.begin(), all.end(), stem) != all.end()) return;
    all.push_back(stem);
    if (!IsCommonWord(word) && !IsAmong(kAskingWords, word)) telling.push_back(stem);
  });
  return telling.empty() ? all : telling;
}

Stemmer::Stemmer() : stemmer_(sb_stemmer_new("english", "UTF_8")) {}

std::string Stemmer::Stem(std::string_view word) {
  const sb_symbol* stem =
      sb_stemmer_stem(stemmer_.get(), reinterpret_cast<const sb_symbol*>(word.data()),
                      static_cast<int>(word.size()));
  if (stem == nullptr) return std::string(word);  // Out of memory.
  return std::string(reinterpret_cast<const char*>(stem),
                     static_cast<size_t>(sb_stemmer_length(stemmer_.get())));
}

WordCounter::WordCounter(const std::vector<std::string>& stems) : stems_(stems.size()) {
  for (size_t i = 0; i < stems.size(); ++i) of_stem_.emplace(stems[i], static_cast<int>(i));
}

int WordCounter::IndexOf(std::string_view word) {
  if (word.size() > kLongestWord) return kOther;
  const absl::string_view key(word.data(), word.size());
  if (const auto known = of_word_.find(key); known != of_word_.end()) return known->second;
  if (of_word_.size() >= kMostKnownWords) of_word_.clear();
  int index = kOther;
  if (const auto found = of_stem_.find(stemmer_.Stem(word)); found != of_stem_.end()) {
    index = found->second;
  } else if (IsCommonWord(word)) {
    index = kCommon;
  }
  of_word_.emplace(key, index);
  return index;
}

void WordCounter::Count(std::string_view text, WordCounts* counts) {
  counts->counts.resize(stems_);
  ForEachWord(text, [&](std::string_view word) {
    const int index = IndexOf(word);
    if (index != kCommon) ++counts->words;
    if (index >= 0) ++counts->counts[static_cast<size_t>(index)];
  });
}

}  // namespace longview::client
