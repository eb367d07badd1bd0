// How every family's LoadXAt goes, around its decoder:
//
//   auto start = StartGeneratorAt(device.get(), directory, options, info, notes);
//   auto decoder = ForwardDecoder::Create(..., start->compute, ..., std::move(device));
//   return FinishGenerator(*std::move(start), *std::move(decoder), parameters, memory_bytes);
//
// Thread-safe: functions of their arguments.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "models/dense/compute_choice.h"
#include "models/directory/model_directory.h"
#include "models/generation/decoder/cache_room.h"
#include "models/generation/decoder/decoder.h"
#include "models/generation/model/generator_model.h"
#include "models/model.h"

namespace longview::models {

struct GeneratorStart {
  Compute compute = Compute::kFp32;
  CacheRoom room = 0;
  // All but decoder and codec; the traits that config.json names for every family are set.
  GeneratorParts parts;
};

// On "cpu" or a device, in the type that was chosen for it. `info` is what the family says of
// itself without loading. INVALID_ARGUMENT for generation options of the directory that are not
// served.
absl::StatusOr<GeneratorStart> StartGeneratorOn(const std::string& device, ComputeChoice choice,
                                                const ModelDirectory& directory,
                                                const LoadOptions& options, ModelInfo info);

// Makes the directory's tokenizer, if it has one, the generator's.
void TakeTokenizer(ModelDirectory& directory, GeneratorParts& parts);

absl::StatusOr<std::unique_ptr<Model>> FinishGenerator(GeneratorStart start,
                                                       std::unique_ptr<Decoder> decoder,
                                                       double parameters, double memory_bytes);

}  // namespace longview::models
