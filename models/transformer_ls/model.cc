#include "models/transformer_ls/model.h"

#include <string>
#include <utility>
#include <vector>

#include "models/generation/generator_placement.h"
#include "models/text/byte_codec.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/decoder.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {
namespace {

// Positions are relative and have no table, so only memory ends a text; longview.json may say
// otherwise.
constexpr int kMaxTokens = 1 << 17;

// What both functions need, checked.
struct Settings {
  LsLmConfig config;
  std::unique_ptr<TextCodec> codec;
  int max_tokens = 0;
};

absl::StatusOr<Settings> ReadSettings(const ModelDirectory& directory) {
  absl::StatusOr<LsLmConfig> config =
      ParseLsLmConfig(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config.status();
  const auto tokenizer = directory.config.find("tokenizer");
  const bool described = tokenizer != directory.config.end() && !tokenizer->is_null();
  auto codec = ByteCodec::Create(described ? &*tokenizer : nullptr, directory.path, config->vocab,
                                 directory.config_path);
  if (!codec.ok()) return codec.status();
  return Settings{*std::move(config), *std::move(codec),
                  directory.serving.max_tokens.value_or(kMaxTokens)};
}

ModelInfo InfoOf(const ModelDirectory& directory, const Settings& settings) {
  ModelInfo info;
  info.family = "transformer_ls";
  info.architecture = directory.common.architecture;
  DescribeGenerator(settings.config.vocab, settings.max_tokens, settings.config.granule(), true,
                    info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeTransformerLs(const ModelDirectory& directory) {
  const absl::StatusOr<Settings> settings = ReadSettings(directory);
  if (!settings.ok()) return settings.status();
  const auto weights =
      LoadLsLmWeights(settings->config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  ModelInfo info = InfoOf(directory, *settings);
  info.parameters = weights->parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadTransformerLs(ModelDirectory directory,
                                                         const LoadOptions& options) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  return LoadTransformerLsAt(*std::move(device), std::move(directory), options, std::move(notes));
}

absl::StatusOr<std::unique_ptr<Model>> LoadTransformerLsAt(std::unique_ptr<Device> device,
                                                           ModelDirectory directory,
                                                           const LoadOptions& options,
                                                           std::vector<std::string> notes) {
  absl::StatusOr<Settings> settings = ReadSettings(directory);
  if (!settings.ok()) return settings.status();
  absl::StatusOr<GeneratorStart> start = StartGeneratorAt(
      device.get(), directory, options, InfoOf(directory, *settings), std::move(notes));
  if (!start.ok()) return start.status();
  start->parts.codec = std::move(settings->codec);
  auto decoder = LsDecoder::Create(settings->config, std::move(directory.checkpoint),
                                   directory.path, start->compute, settings->max_tokens,
                                   start->room, std::move(device));
  if (!decoder.ok()) return decoder.status();
  const double parameters = (*decoder)->parameters(), bytes = (*decoder)->memory_bytes();
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
