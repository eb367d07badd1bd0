// Generations compared: of a device with the host's, alone and in a batch.
#pragma once

#include <functional>
#include <vector>

#include "tests/models/generation/generator_driver.h"

namespace longview::models {

// A continuation of `ids` with sampled tokens, whose log-probabilities are reported.
Request SampledRequest(std::vector<int32_t> ids, uint32_t seed, int samples, int tokens);

// Tokens are equal; log-probabilities differ by at most `tolerance`, with 0 in no bit.
void ExpectPiece(const Piece& got, const Piece& want, double tolerance);
void ExpectPieces(const std::vector<Piece>& got, const std::vector<Piece>& want, double tolerance);

// Requests alone, of one sample each, then all of them together, of `samples`: their first samples
// have the same bits, the others are of other tokens. Prompts come in parts of `prefill` tokens.
using RequestOf = std::function<Request(uint32_t number, int samples)>;
void ExpectBatchInvariance(Model& model, int requests, int samples, int prefill,
                           const RequestOf& request);

// Two requests begin in one step and the first leaves after `advances` advances: the other answers
// as alone. REQUIRES: a model with an encoder.
void ExpectADroppedDocumentHarmsNobody(Model& model, int advances, const RequestOf& request);

}  // namespace longview::models
