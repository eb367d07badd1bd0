// The generating items of one call: submitted together, their output in one flow, counted and
// recorded as one call.
#pragma once

#include <memory>
#include <vector>

#include "server/api/context.h"
#include "server/api/piece_flow.h"

namespace longview::server {

// Rewords a model's error about an item in the terms of the API that was called. `items`: how
// many there are in the call.
using ItemErrorWords = absl::Status (*)(const absl::Status& status, size_t item, size_t items);

struct GenerationJob {
  ModelHandle model;
  std::vector<models::Request> items;  // With `generation` set, all with the same options.
  ItemErrorWords words = nullptr;      // Null: as the model says.
};

// Callbacks for a call's output. All run on the engine's threads, one after the other.
struct GenerationSink {
  absl::AnyInvocable<void()> on_admitted;  // May be null.
  // An error ends the call. Null: the end is enough.
  absl::AnyInvocable<absl::Status(std::vector<models::Piece>)> on_pieces;
  absl::AnyInvocable<void(Echo)> on_echo;  // Goes with on_pieces, and comes before its item's.
  // Makes an answer of the completed items; an error becomes the call's. May be null.
  absl::AnyInvocable<absl::Status(std::vector<Completed>&)> answer;
  absl::AnyInvocable<void(GenerationEnd)> on_end;  // Always, and once.
};

// A sink that feeds `flow`; without pieces if they are not wanted.
GenerationSink Into(std::shared_ptr<PieceFlow> flow, bool pieces = true);

// Sequences each item of the job gives.
int SequencesPerItem(const GenerationJob& job);

// Submits all. Pieces are numbered through: item x sequences + sample. Admitted when all are; the
// first failure ends the call and cancels the others. The end may come inside this call.
std::shared_ptr<PendingCall> StartGeneration(ApiContext& context, const CallInfo& info,
                                             GenerationJob job, GenerationSink sink);

// The generator of that name; "" = the only one. UNIMPLEMENTED if the model does not generate.
absl::StatusOr<ModelHandle> FindGenerator(ApiContext& context, std::string_view name,
                                          std::string_view version);

}  // namespace longview::server
