#include "models/generation/model/generator_loading.h"

#include <utility>

#include "models/directory/architecture.h"
#include "models/generation/decoder/cache_room.h"
#include "models/generation/options/model_defaults.h"
#include "models/generation/options/settings.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/generation/passes/source_model.h"
#include "models/status_macros.h"
#include "models/text/tokenizer_codec.h"

namespace longview::models {
namespace {

// The description of a family whose model may not be loaded.
ModelInfo InfoOf(const ModelDirectory& directory, const GeneratorFamily& family) {
  const TokenModel& model = *family.model;
  ModelInfo info;
  info.family = model.family();
  info.architecture = directory.common.architecture;
  const bool text =
      family.text ? family.text->codec != nullptr : directory.bytes || directory.tokenizer;
  if (const SourceModel* source = model.source()) {
    FillEncoderDecoderInfo(model.vocab(), source->max_tokens(), source->prefill_alignment(), text,
                           source->rules().facts().global_attention, source->width(), info);
  } else {
    FillGeneratorInfo(model.vocab(), family.max_tokens, model.prefill_alignment(), text, info);
  }
  return info;
}

// Makes the directory's tokenizer, if it has one, the generator's.
void TakeTokenizer(ModelDirectory& directory, GeneratorParts& parts) {
  if (directory.bytes) parts.codec = std::move(directory.bytes->codec);
  if (!directory.tokenizer) return;
  auto codec = std::make_unique<TokenizerCodec>(*std::move(directory.tokenizer));
  parts.tokenizer = &codec->tokenizer();
  parts.codec = std::move(codec);
}

// All parts but the decoder and what it says of itself.
absl::StatusOr<GeneratorParts> PartsOf(std::unique_ptr<ModelDirectory> directory,
                                       GeneratorFamily& family, const Placement& place) {
  ASSIGN_OR_RETURN(GenerationOptions defaults, ReadGenerationDefaults(*directory));
  GeneratorParts parts;
  parts.info = InfoOf(*directory, family);
  parts.info.notes = CompletionNotes(*directory);
  parts.info.notes.insert(parts.info.notes.end(), place.notes.begin(), place.notes.end());
  parts.info.dtype = place.dtype();
  parts.info.device = place.name;
  parts.traits = std::move(family.traits);
  parts.traits.defaults = MergeOptions(std::move(defaults), parts.traits.defaults);
  parts.truncate = directory->serving.truncate.value_or(false);
  parts.warms_up = directory->serving.warmup;
  if (family.text) {
    parts.codec = std::move(family.text->codec);
    parts.tokenizer = family.text->documents;
  } else {
    TakeTokenizer(*directory, parts);
  }
  parts.directory = std::move(directory);
  return parts;
}

}  // namespace

GeneratorFamily::GeneratorFamily(const ModelDirectory& directory) {
  traits.bos = directory.common.bos_token_id;
  traits.eos = directory.common.eos_token_ids;
  traits.pad = directory.common.pad_token_id;
}

absl::StatusOr<ModelInfo> DescribeGenerator(const ModelDirectory& directory, MakeGenerator make) {
  ASSIGN_OR_RETURN(const GeneratorFamily family, make(directory));
  RETURN_IF_ERROR(family.model->Load(std::nullopt, nullptr));
  ModelInfo info = InfoOf(directory, family);
  info.parameters = family.model->parameters();
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadGeneratorAt(std::unique_ptr<Device> device,
                                                       ModelDirectory directory,
                                                       const LoadOptions& options,
                                                       MakeGenerator make,
                                                       std::vector<std::string> notes) {
  auto kept = std::make_unique<ModelDirectory>(std::move(directory));
  const std::string& origin = kept->path;
  ASSIGN_OR_RETURN(GeneratorFamily family, make(*kept));
  ASSIGN_OR_RETURN(Placement place, PlaceModel(std::move(device), family.obstacle, *kept, options,
                                               std::move(notes)));
  ASSIGN_OR_RETURN(GeneratorParts parts, PartsOf(std::move(kept), family, place));
  const ForwardDecoder::Limits limits = {family.max_tokens, RoomOf(options, place.name)};
  ASSIGN_OR_RETURN(auto decoder,
                   ForwardDecoder::Create(std::move(family.model), origin, place.format(), limits,
                                          std::move(place.device)));
  RETURN_IF_ERROR(NoteInt8(*parts.directory, place, parts.info.notes));
  parts.info.parameters = decoder->model().parameters();
  parts.info.memory_bytes = decoder->memory_bytes();
  parts.decoder = std::move(decoder);
  return MakeGeneratorModel(std::move(parts));
}

}  // namespace longview::models
