// Reads the long arrays of numbers in a JSON text (token ids, tensors) at memory speed.
//
// A general JSON parser spends most of a request's time on 4,096 ids. So they are cut out
// first: each array that holds nothing but numbers is parsed straight into a vector, and `[]`
// stands in its place in the text the general parser gets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace longview::server {

// Integers, or doubles if any element has a fraction or an exponent.
using Numbers = std::variant<std::vector<int64_t>, std::vector<double>>;

struct LiftedArray {
  size_t ordinal = 0;   // Index of its '[' among those of the reduced text, from 0.
  size_t text_end = 0;  // Byte after its ']' in the reduced text.
  size_t removed = 0;   // Bytes cut out of it.
  Numbers numbers;
};

struct ReducedJson {
  std::string_view original;
  std::string kept;                 // Empty if nothing was lifted: no copy of a long text.
  std::vector<LiftedArray> arrays;  // By ordinal.
  size_t bytes = 0;                 // Sum over all numbers.
  bool too_large = false;           // The numbers passed the limit; the rest was not read.

  std::string_view text() const { return arrays.empty() ? original : std::string_view(kept); }
  // The position in the original of byte `position` of `text`.
  size_t OriginalPosition(size_t position) const;
};

// Lifts at most `max_bytes` of numbers and borrows `json`. Never fails otherwise: whatever is not a
// well-formed array of numbers (in the strict grammar of JSON, integers within 64 bits) stays in
// the text for the general parser to judge.
ReducedJson LiftNumberArrays(std::string_view json, size_t max_bytes);

}  // namespace longview::server
