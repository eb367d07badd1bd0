#include "models/generation/model/generator_loading.h"

#include <utility>

#include "models/directory/architecture.h"
#include "models/generation/options/model_defaults.h"
#include "models/text/tokenizer_codec.h"

namespace longview::models {

absl::StatusOr<GeneratorStart> StartGeneratorOn(const std::string& device, ComputeChoice choice,
                                                const ModelDirectory& directory,
                                                const LoadOptions& options, ModelInfo info) {
  absl::StatusOr<GenerationOptions> defaults = ReadGenerationDefaults(directory);
  if (!defaults.ok()) return defaults.status();
  GeneratorStart start;
  start.compute = choice.compute;
  GeneratorParts& parts = start.parts;
  parts.info = std::move(info);
  parts.info.notes = CompletionNotes(directory);
  parts.info.notes.insert(parts.info.notes.end(), choice.notes.begin(), choice.notes.end());
  parts.info.dtype = ComputeName(choice.compute);
  parts.info.device = device;
  start.room = RoomOf(options, parts.info.device);
  parts.traits.defaults = *std::move(defaults);
  parts.traits.bos = directory.common.bos_token_id;
  parts.traits.eos = directory.common.eos_token_ids;
  parts.traits.pad = directory.common.pad_token_id;
  parts.truncate = directory.serving.truncate.value_or(false);
  parts.warms_up = directory.serving.warmup;
  return start;
}

void TakeTokenizer(ModelDirectory& directory, GeneratorParts& parts) {
  if (directory.bytes) parts.codec = std::move(directory.bytes->codec);
  if (!directory.tokenizer) return;
  auto codec = std::make_unique<TokenizerCodec>(*std::move(directory.tokenizer));
  parts.tokenizer = &codec->tokenizer();
  parts.codec = std::move(codec);
}

absl::StatusOr<std::unique_ptr<Model>> FinishGenerator(GeneratorStart start,
                                                       std::unique_ptr<Decoder> decoder,
                                                       double parameters, double memory_bytes) {
  start.parts.info.parameters = parameters;
  start.parts.info.memory_bytes = memory_bytes;
  start.parts.decoder = std::move(decoder);
  return MakeGeneratorModel(std::move(start.parts));
}

}  // namespace longview::models
