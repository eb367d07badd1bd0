// Requests through a model without a server.
#pragma once

#include <vector>

#include "models/model.h"

namespace longview::models {

// All requests as one batch; failures of Prepare and Take are test failures, with empty answers.
std::vector<Answer> RunTogether(const Model& model, const std::vector<Request>& requests);
Answer RunAlone(const Model& model, const Request& request);

// Of tensors.
void ExpectSameBits(const std::vector<Answer>& a, const std::vector<Answer>& b);

// The first of `requests` leaves a batch that runs; the others get the bits they have without it.
void ExpectDropsChangeNothing(const Model& model, const std::vector<Request>& requests);

}  // namespace longview::models
