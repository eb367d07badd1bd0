// The generating items of one call: submitted together, their output in one flow, counted and
// recorded as one call.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "server/api/calls/context.h"
#include "server/api/calls/piece_flow.h"

namespace longview::server {

// Rewords a model's error about an item in the terms of the API that was called. `items`: how
// many there are in the call.
using ItemErrorWords = absl::Status (*)(const absl::Status& status, size_t item, size_t items);

struct GenerationJob {
  ModelHandle model;
  std::vector<models::Request> items;  // With `generation` set, all with the same options.
  ItemErrorWords words = nullptr;      // Null: as the model says.
  // Makes an answer of the completed items; an error becomes the call's. May be null.
  absl::AnyInvocable<absl::Status(std::vector<Completed>&)> answer = nullptr;
};

// Sequences each item of the job gives.
int SequencesPerItem(const GenerationJob& job);

// Submits all; their output goes to `flow`, whose end may come inside this call. Pieces are
// numbered through: item x sequences + sample. Admitted when all are; the first failure ends the
// call and cancels the others.
std::shared_ptr<PendingCall> StartGeneration(ApiContext& context, const CallInfo& info,
                                             GenerationJob job, std::shared_ptr<PieceFlow> flow);

// StartGeneration without pieces: `done` gets the end, once, on a thread of the engine or inside
// this call.
std::shared_ptr<PendingCall> CollectGeneration(ApiContext& context, const CallInfo& info,
                                               GenerationJob job,
                                               absl::AnyInvocable<void(GenerationEnd)> done);

// The generator of that name; "" = the only one. UNIMPLEMENTED if the model does not generate.
absl::StatusOr<ModelHandle> FindGenerator(ApiContext& context, std::string_view name,
                                          std::string_view version);

}  // namespace longview::server
