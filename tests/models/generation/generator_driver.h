// Drives generations of a model by hand: grants, steps, pieces.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/model/generator_model.h"
#include "models/model.h"
#include "tests/support/toy_decoder.h"

namespace longview::models {

// A model over the toy decoder, which stays the model's.
struct ToyModel {
  std::unique_ptr<Model> model;
  std::shared_ptr<testing::ToyCounts> counts;
};
ToyModel MakeToyModel(const testing::ToyOptions& options = {}, GeneratorTraits traits = {},
                      bool with_text = true);

Request TextRequest(std::string text, GenerationOptions options = {});
Request IdsRequest(std::vector<int32_t> ids, GenerationOptions options = {});
GenerationOptions NewTokens(int tokens);

// An item at work, with everything it has put out.
struct Live {
  std::unique_ptr<Item> item;
  std::unique_ptr<Generation> generation;
  std::vector<Piece> pieces;
};

// Prepares and starts; a failure is a test failure.
Live StartOn(Model& model, const Request& request);

// One step of these; each prompt gets at most `prefill` tokens (0 = all that is left).
void StepOnce(Model& model, const std::vector<Live*>& lives, int prefill = 0);

// To the end, alone. Pieces are those TakePieces gave.
absl::StatusOr<Answer> Finish(Model& model, Live& live, int prefill = 0);
Answer Generate(Model& model, const Request& request, int prefill = 0);

// The pieces of one sequence put together.
Piece Joined(const std::vector<Piece>& pieces, int index);

// The message of Prepare; "" if it accepts.
std::string Refusal(const Model& model, const Request& request);

}  // namespace longview::models
