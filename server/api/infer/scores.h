// Scores of classifiers as probabilities and decisions. Rows are the last dimension.
#pragma once

#include <cstddef>
#include <vector>

#include "models/model.h"

namespace longview::server {

// In place: sigmoid of every score if the classes are independent, else softmax over each
// row. REQUIRES: FP32.
void ToProbabilities(models::HostTensor& scores, bool independent);

// Index of each row's highest score, the first of equals. REQUIRES: FP32.
std::vector<size_t> HighestPerRow(const models::HostTensor& scores);

}  // namespace longview::server
