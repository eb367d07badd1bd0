#include "models/luna_decoder/model.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/linear_attention/outer_api.h"
#include "models/generation/model/generator_placement.h"
#include "models/generation/options/settings.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/luna_decoder/config.h"
#include "models/luna_decoder/memory.h"
#include "models/luna_decoder/pass.h"
#include "models/text/bounded_codec.h"
#include "models/text/dictionary_codec.h"
#include "models/text/dictionary_tokenizer.h"
#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {
namespace {

struct LunaText {
  std::unique_ptr<TextCodec> codec;  // Writes outputs; null without dictionaries.
  // Reads documents to translate, each ended by </s>; owned by `codec`.
  const Tokenizer* documents = nullptr;
};

// Outputs by one dictionary, documents by another or the same.
class TranslationCodec final : public TextCodec, public BoundedCodec {
 public:
  TranslationCodec(std::unique_ptr<TextCodec> outputs, Tokenizer documents)
      : outputs_(std::move(outputs)), documents_(std::move(documents)) {}

  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override {
    return outputs_->Encode(text);
  }
  absl::StatusOr<TextTokens> EncodeFirst(std::string_view text,
                                         const TextBounds& bounds) const override {
    return models::EncodeFirst(*outputs_, text, bounds);
  }
  std::string Bytes(int32_t id) const override { return outputs_->Bytes(id); }
  const Tokenizer& documents() const { return documents_; }

 private:
  const std::unique_ptr<TextCodec> outputs_;
  const Tokenizer documents_;
};

// INVALID_ARGUMENT names the file: broken, of another size than the vocabulary, or one of two.
absl::StatusOr<LunaText> ReadLunaText(const std::string& directory,
                                      const LunaDecoderConfig& config) {
  LunaText text;
  const bool two = std::filesystem::exists(std::filesystem::path(directory) / "dict.tgt.txt");
  const std::string target = two && config.encoder ? "dict.tgt.txt" : "dict.txt";
  absl::StatusOr<std::unique_ptr<TextCodec>> outputs =
      DictionaryCodec::Read(directory, target, config.vocab);
  if (!outputs.ok()) return outputs.status();
  if (*outputs == nullptr || !config.encoder) {
    text.codec = *std::move(outputs);
    return text;
  }
  const std::string source = two ? "dict.src.txt" : "dict.txt";
  const absl::StatusOr<TokenizerSource> dictionary = ReadDictionaryTokenizer(directory, {}, source);
  if (absl::IsNotFound(dictionary.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": dict.tgt.txt needs dict.src.txt beside it"));
  }
  if (!dictionary.ok()) return dictionary.status();
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Create(*dictionary);
  if (!tokenizer.ok()) return tokenizer.status();
  if (tokenizer->max_id() >= config.encoder->vocab) {
    return absl::InvalidArgumentError(absl::StrCat(dictionary->origin, ": ids up to ",
                                                   tokenizer->max_id(), ", vocab_size is ",
                                                   config.encoder->vocab));
  }
  auto codec = std::make_unique<TranslationCodec>(*std::move(outputs), *std::move(tokenizer));
  text.documents = &codec->documents();
  text.codec = std::move(codec);
  return text;
}

// Tokens that a prompt or, on the host, a document is granted in multiples of: whole panels of
// linears cost least. A state may be cut anywhere.
constexpr int kGranule = kernels::kBlockSlots;

// The checked settings that both functions need.
struct Settings {
  LunaDecoderConfig config;
  LunaText text;
  int max_tokens = 0;    // In an output; in a translation its start included.
  int max_document = 0;  // In a translation's source.
};

absl::StatusOr<Settings> ReadSettings(const ModelDirectory& directory) {
  absl::StatusOr<LunaDecoderConfig> config =
      ParseLunaDecoderConfig(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config.status();
  absl::StatusOr<LunaText> text = ReadLunaText(directory.path, *config);
  if (!text.ok()) return text.status();
  Settings settings = {*std::move(config), *std::move(text)};
  const std::optional<int> most = directory.serving.max_tokens;
  const int tokens = settings.config.max_tokens;
  if (settings.config.encoder) {
    // The last token of an output is never read; max_tokens of longview.json is the document's.
    settings.max_tokens = tokens + 1;
    const int document = settings.config.encoder->max_tokens;
    settings.max_document = std::min(document, most.value_or(document));
  } else {
    settings.max_tokens = std::min(tokens, most.value_or(tokens));
  }
  return settings;
}

ModelInfo InfoOf(const ModelDirectory& directory, const Settings& settings) {
  const LunaDecoderConfig& config = settings.config;
  ModelInfo info;
  info.family = "luna";
  info.architecture = directory.common.architecture;
  const bool text = settings.text.codec != nullptr;
  if (config.encoder) {
    DescribeEncoderDecoder(config.vocab, settings.max_document, kGranule, text, false, config.width,
                           info);
  } else {
    DescribeGenerator(config.vocab, settings.max_tokens, kGranule, text, info);
  }
  return info;
}

// The embedding, which counts once.
double SharedParameters(const LunaDecoderConfig& config) {
  return config.shared_words ? double{1} * config.vocab * config.width : 0;
}

// fairseq's generator: an output has a token before its end, never padding, and an end that is
// forced behind the longest; a search stops when as many outputs as beams are finished.
absl::StatusOr<GenerationOptions> TranslationDefaults(const LunaDecoderConfig& config,
                                                      GenerationOptions found) {
  GenerationOptions fairseq;
  fairseq.min_new_tokens = 1;
  fairseq.early_stopping = true;
  absl::Status status = SetOption(fairseq, "suppress_tokens", absl::StrCat("[", config.pad, "]"));
  if (status.ok() && !config.ends.empty()) {
    status = SetOption(fairseq, "forced_eos_token_id", absl::StrCat(config.ends.front()));
  }
  if (!status.ok()) return status;
  return MergeOptions(std::move(found), fairseq);
}

}  // namespace

LunaLm::LunaLm(const LunaDecoderConfig& config, Checkpoint checkpoint, std::string origin,
               int max_document)
    : config_(config), checkpoint_(std::move(checkpoint)), origin_(std::move(origin)) {
  if (config_.encoder) source_.emplace(config_, weights_, encoder_, max_document);
}

kernels::CacheShape LunaLm::Shape(kernels::DType) const { return LunaSequenceShape(config_); }

absl::Status LunaLm::Load(std::optional<Compute> compute, DeviceStore* store) {
  absl::StatusOr<LunaDecoderWeights> weights =
      LoadLunaDecoderWeights(config_, checkpoint_, origin_, compute, store);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  if (!config_.encoder) return absl::OkStatus();
  absl::StatusOr<LunaWeights> encoder =
      LoadLunaWeights(*config_.encoder, checkpoint_, origin_, compute, store);
  if (encoder.ok()) encoder_ = *std::move(encoder);
  return encoder.status();
}

double LunaLm::parameters() const {
  return weights_.parameters + encoder_.parameters - SharedParameters(config_);
}

std::unique_ptr<TokenForward> LunaLm::Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                              int64_t logit_rows) const {
  return std::make_unique<LunaTokenPass>(config_, weights_, frame, std::move(runs), logit_rows);
}

absl::StatusOr<ModelInfo> DescribeLunaDecoder(const ModelDirectory& directory) {
  const absl::StatusOr<Settings> settings = ReadSettings(directory);
  if (!settings.ok()) return settings.status();
  const absl::StatusOr<LunaDecoderWeights> weights =
      LoadLunaDecoderWeights(settings->config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  ModelInfo info = InfoOf(directory, *settings);
  info.parameters = weights->parameters - SharedParameters(settings->config);
  if (!settings->config.encoder) return info;
  const absl::StatusOr<LunaWeights> encoder = LoadLunaWeights(
      *settings->config.encoder, directory.checkpoint, directory.path, std::nullopt);
  if (!encoder.ok()) return encoder.status();
  info.parameters += encoder->parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLunaDecoder(ModelDirectory directory,
                                                       const LoadOptions& options) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  return LoadLunaDecoderAt(*std::move(device), std::move(directory), options, std::move(notes));
}

absl::StatusOr<std::unique_ptr<Model>> LoadLunaDecoderAt(std::unique_ptr<Device> device,
                                                         ModelDirectory directory,
                                                         const LoadOptions& options,
                                                         std::vector<std::string> notes) {
  absl::StatusOr<Settings> settings = ReadSettings(directory);
  if (!settings.ok()) return settings.status();
  if (device != nullptr && std::max(settings->config.projected, settings->config.head_dim()) >
                               kernels::cuda::kMostOuterRows) {
    notes.push_back(absl::StrCat("runs on the CPU: running sums on a device have up to ",
                                 kernels::cuda::kMostOuterRows, " rows (proj_len) and columns"));
    device.reset();
  }
  absl::Status fits = CheckWidth(device.get(), settings->config.width, directory);
  if (!fits.ok()) return fits;
  absl::StatusOr<GeneratorStart> start = StartGeneratorAt(
      device.get(), directory, options, InfoOf(directory, *settings), std::move(notes));
  if (!start.ok()) return start.status();
  GeneratorTraits& traits = start->parts.traits;
  traits.pad = settings->config.pad;
  traits.eos = settings->config.ends;
  if (settings->config.encoder) {
    absl::StatusOr<GenerationOptions> defaults =
        TranslationDefaults(settings->config, std::move(traits.defaults));
    if (!defaults.ok()) return defaults.status();
    traits.defaults = *std::move(defaults);
    traits.fairseq = true;
    traits.bos.reset();
    traits.decoder_start = {settings->config.start};
  }
  auto decoder = ForwardDecoder::Create(
      std::make_unique<LunaLm>(settings->config, std::move(directory.checkpoint), directory.path,
                               settings->max_document),
      directory.path, start->compute, {settings->max_tokens, start->room}, std::move(device));
  if (!decoder.ok()) return decoder.status();
  start->parts.codec = std::move(settings->text.codec);
  start->parts.tokenizer = settings->text.documents;
  const double parameters = (*decoder)->model().parameters();
  const double bytes = (*decoder)->memory_bytes();
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
