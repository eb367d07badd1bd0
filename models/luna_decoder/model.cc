#include "models/luna_decoder/model.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/linear_attention/outer_api.h"
#include "models/generation/model/family.h"
#include "models/generation/options/settings.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/luna_decoder/config.h"
#include "models/luna_decoder/memory.h"
#include "models/luna_decoder/pass.h"
#include "models/status_macros.h"
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
  ASSIGN_OR_RETURN(std::unique_ptr<TextCodec> outputs,
                   DictionaryCodec::Read(directory, target, config.vocab));
  if (outputs == nullptr || !config.encoder) {
    text.codec = std::move(outputs);
    return text;
  }
  const std::string source = two ? "dict.src.txt" : "dict.txt";
  const absl::StatusOr<TokenizerSource> dictionary = ReadDictionaryTokenizer(directory, {}, source);
  if (absl::IsNotFound(dictionary.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": dict.tgt.txt needs dict.src.txt beside it"));
  }
  if (!dictionary.ok()) return dictionary.status();
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Create(*dictionary));
  if (tokenizer.max_id() >= config.encoder->vocab) {
    return absl::InvalidArgumentError(absl::StrCat(dictionary->origin, ": ids up to ",
                                                   tokenizer.max_id(), ", vocab_size is ",
                                                   config.encoder->vocab));
  }
  auto codec = std::make_unique<TranslationCodec>(std::move(outputs), std::move(tokenizer));
  text.documents = &codec->documents();
  text.codec = std::move(codec);
  return text;
}

// The first of what devices cannot run.
DeviceObstacle ObstacleOf(const LunaDecoderConfig& config) {
  constexpr int kMost = kernels::cuda::kMostOuterRows;
  if (auto rows = AboveLimit("proj_len ", config.projected, kMost, "rows of running sums")) {
    return rows;
  }
  if (auto columns =
          AboveLimit("a head of ", config.head_dim(), kMost, "columns of running sums")) {
    return columns;
  }
  return OddWidth("width ", config.width);
}

// The embedding, which counts once.
double SharedParameters(const LunaDecoderConfig& config) {
  return config.shared_words ? double{1} * config.vocab * config.width : 0;
}

// fairseq's generator: an output has a token before its end, never padding, and an end that is
// forced behind the longest; a search stops when as many outputs as beams are finished.
absl::StatusOr<GenerationOptions> TranslationDefaults(const LunaDecoderConfig& config) {
  GenerationOptions fairseq;
  fairseq.min_new_tokens = 1;
  fairseq.early_stopping = true;
  absl::Status status = SetOption(fairseq, "suppress_tokens", absl::StrCat("[", config.pad, "]"));
  if (status.ok() && !config.ends.empty()) {
    status = SetOption(fairseq, "forced_eos_token_id", absl::StrCat(config.ends.front()));
  }
  if (!status.ok()) return status;
  return fairseq;
}

}  // namespace

LunaLm::LunaLm(const LunaDecoderConfig& config, const ModelDirectory& directory, int max_document)
    : config_(config), directory_(directory) {
  if (config_.encoder) source_.emplace(config_, weights_, encoder_, max_document);
}

kernels::CacheShape LunaLm::Shape(kernels::DType) const { return LunaSequenceShape(config_); }

absl::Status LunaLm::Load(std::optional<WeightFormat> format, DeviceStore* store) {
  ASSIGN_OR_RETURN(
      LunaDecoderWeights weights,
      LoadLunaDecoderWeights(config_, directory_.checkpoint, directory_.path, format, store));
  weights_ = std::move(weights);
  if (!config_.encoder) return absl::OkStatus();
  absl::StatusOr<LunaWeights> encoder =
      LoadLunaWeights(*config_.encoder, directory_.checkpoint, directory_.path, format, store);
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

absl::StatusOr<GeneratorFamily> MakeLunaDecoder(const ModelDirectory& directory) {
  ASSIGN_OR_RETURN(
      const LunaDecoderConfig config,
      ParseLunaDecoderConfig(directory.config, directory.common, directory.config_path));
  ASSIGN_OR_RETURN(LunaText text, ReadLunaText(directory.path, config));
  const int most = directory.serving.max_tokens.value_or(std::numeric_limits<int>::max());
  GeneratorFamily family(directory);
  GeneratorTraits& traits = family.traits;
  traits.pad = config.pad;
  traits.eos = config.ends;
  int document = 0;
  if (config.encoder) {
    ASSIGN_OR_RETURN(GenerationOptions defaults, TranslationDefaults(config));
    traits.defaults = std::move(defaults);
    traits.fairseq = true;
    traits.bos.reset();
    traits.decoder_start = {config.start};
    // The last token of an output is never read; max_tokens of longview.json is the document's.
    family.max_tokens = config.max_tokens + 1;
    document = std::min(config.encoder->max_tokens, most);
  } else {
    family.max_tokens = std::min(config.max_tokens, most);
  }
  family.model = std::make_unique<LunaLm>(config, directory, document);
  family.obstacle = ObstacleOf(config);
  family.text = {std::move(text.codec), text.documents};
  return family;
}

}  // namespace longview::models
