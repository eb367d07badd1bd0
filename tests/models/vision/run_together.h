// Requests through a model without a server.
#pragma once

#include <vector>

#include "models/model.h"

namespace longview::models {

// All requests as one batch; failures of Prepare and Take are test failures.
std::vector<Answer> RunTogether(const Model& model, const std::vector<Request>& requests);

}  // namespace longview::models
