// Texts and pictures of the user's own, on which an int8 model is compared.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace longview::models {

inline constexpr size_t kMostInputs = 1000;
inline constexpr size_t kMostTextBytes = size_t{1} << 20;
inline constexpr size_t kMostPictureBytes = size_t{64} << 20;
inline constexpr size_t kMostLinesBytes = size_t{1} << 30;

struct GivenText {
  std::string text;
  std::string pair;  // Empty: there is none.
};

// Paths, as a command line names them.
struct GivenFiles {
  std::string lines = "";  // A text a line, or a JSON object a line (.jsonl); empty = none.
  std::vector<std::string> texts = {};  // A text each.
  std::vector<std::string> pictures = {};
  std::vector<std::string> notes = {};  // Says what was left out already.
};

struct GivenInputs {
  std::vector<GivenText> texts;
  std::vector<std::string> pictures;  // Paths.
  std::vector<std::string> notes;     // Says what was left out, for a person.
};

// Reads the texts. Of more than kMostInputs so many count, evenly spaced; of a longer text its
// first kMostTextBytes. What is empty or no UTF-8 is left out, with a note. INVALID_ARGUMENT or
// NOT_FOUND names the file, and the line that is no object with a string "text" (and perhaps a
// string "text_pair").
absl::Status ReadInputs(const GivenFiles& files, GivenInputs& inputs);

// `most` of `count` places, evenly spaced and ascending; all where there are not as many.
std::vector<size_t> EvenlySpaced(size_t count, size_t most);

// The first `most` bytes, without a part of a character at their end.
std::string BeginningOf(std::string_view text, size_t most);

// The first sentence of a text, at most 64 words and 1,000 bytes.
std::string FirstSentence(std::string_view text);

}  // namespace longview::models
