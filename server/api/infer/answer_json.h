// Typed results as the JSON that BYTES outputs of the Open Inference Protocol carry.
// Bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace longview::server {

// A list of {label, score, text, start, end}.
std::string EntitiesJson(const std::vector<models::EntitySpan>& entities);

// The best answer {text, start, end, score, probability}; {} if there is none.
std::string AnswerJson(const std::vector<models::AnswerSpan>& answers);

// One list per mask, in order, of {token_id, token, logprob}.
std::string MasksJson(const std::vector<models::MaskFill>& masks);

}  // namespace longview::server
