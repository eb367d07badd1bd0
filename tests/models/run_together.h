// Requests through a model without a server.
#pragma once

#include <span>
#include <vector>

#include "models/model.h"

namespace longview::models {

// All requests as one batch; failures of Prepare and Take are test failures, with empty answers.
std::vector<Answer> RunTogether(const Model& model, const std::vector<Request>& requests);
Answer RunAlone(const Model& model, const Request& request);

// The vectors of a request for chunks, whose items run as one batch, by the chunks' order.
struct ChunkVectors {
  ChunkPlan plan;
  std::vector<Answer> answers;  // One for each of the plan's items.
  std::vector<std::vector<float>> vectors;
};
ChunkVectors RunChunks(const Model& model, const Request& request);

// Largest absolute difference; infinity if the sizes differ or one is NaN.
double LargestDifference(std::span<const float> got, std::span<const double> want);
double LargestDifference(std::span<const float> got, std::span<const float> want);
// The largest over all tensors.
double LargestDifference(const std::vector<Answer>& got, const std::vector<Answer>& want);

void ExpectSameBits(const Detection& a, const Detection& b);
// Compares tensors and detections.
void ExpectSameBits(const std::vector<Answer>& a, const std::vector<Answer>& b);

// Each request gets the same bits alone and among all of them, of which each comes twice; the
// answers.
std::vector<Answer> ExpectSameBitsAloneAndTogether(const Model& model,
                                                   const std::vector<Request>& requests);

// The first of `requests` leaves a batch that runs; the others get the bits they have without it.
void ExpectDropsChangeNothing(const Model& model, const std::vector<Request>& requests);

// While `request` is computed, others run from beginning to end in its pauses (models/pauses.h):
// all get the bits they have alone. They are of the same model, where buffers would be shared if
// any.
void ExpectVisitorsChangeNothing(const Model& model, const Request& request,
                                 const Request& visitor);

}  // namespace longview::models
