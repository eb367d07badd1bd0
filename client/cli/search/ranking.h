// Scores of a question's passages: by words, and of two kinds together.
//
// Thread-safe: pure functions.
#pragma once

#include <span>
#include <vector>

#include "client/cli/search/words.h"

namespace longview::client {

// BM25 of each passage among all of them, in Lucene's form (k1 = 1.5, b = 0.75): a passage without
// any of the stems has 0. [passages]
std::vector<double> Bm25Scores(std::span<const WordCounts> passages);

// The sum of the two lists' z-scores (a score less the list's mean, over its standard deviation); a
// list of equal scores adds nothing. REQUIRES: equal sizes. [passages]
std::vector<double> SumOfZScores(std::span<const double> first, std::span<const double> second);

}  // namespace longview::client
