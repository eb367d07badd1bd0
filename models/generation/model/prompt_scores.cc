#include "models/generation/model/prompt_scores.h"

#include <limits>
#include <optional>
#include <utility>

#include "models/generation/sampling/log_probabilities.h"

namespace longview::models {

size_t TokenBytes(const std::optional<int>& logprobs) {
  constexpr size_t kAllocation = 16;  // The allocator's own, for each list.
  size_t bytes = sizeof(int32_t);
  if (!logprobs) return bytes;
  const auto others = static_cast<size_t>(*logprobs);
  bytes += sizeof(TokenLogprob) + sizeof(std::vector<TokenLogprob>);
  if (others > 0) bytes += others * sizeof(TokenLogprob) + kAllocation;
  return bytes;
}

double EchoBytes(const GenerationItem& item) {
  if (!item.settings.echo) return 0;
  const size_t each =
      TokenBytes(item.scores_prompt() ? item.settings.logprobs : std::optional<int>());
  return static_cast<double>(item.prompt_text.size() + item.prompt.size() * each);
}

PromptScores::PromptScores(const GenerationItem& item, const TextCodec* codec, int vocab)
    : item_(item), codec_(codec), vocab_(vocab) {
  if (!item.scores_prompt() || item.document_tokens > 0) return;
  // Nothing came before the first token.
  logprobs_.reserve(item.prompt.size());
  top_.reserve(item.prompt.size());
  const int32_t first = item.prompt[0];
  logprobs_.push_back({first, std::numeric_limits<float>::quiet_NaN(),
                       codec == nullptr ? std::string() : codec->Bytes(first)});
  top_.emplace_back();
}

void PromptScores::Add(int position, std::span<const float> rows) {
  const auto vocab = static_cast<size_t>(vocab_);
  // Once, and as many bytes as were reserved.
  if (item_.wants_logits) logits_.reserve(item_.prompt.size() * vocab * sizeof(float));
  for (size_t offset = 0; offset < rows.size(); offset += vocab, ++position) {
    const std::span<const float> row = rows.subspan(offset, vocab);
    const int in_prompt = position - item_.document_tokens;
    if (item_.wants_logits && in_prompt >= 0) {
      const auto bytes = std::as_bytes(row);
      logits_.insert(logits_.end(), bytes.begin(), bytes.end());
    }
    const int next = in_prompt + 1;
    if (!item_.scores_prompt() || next < 0 || next >= static_cast<int>(item_.prompt.size())) {
      continue;
    }
    TokenReport report =
        ReportToken(row, item_.prompt[static_cast<size_t>(next)], *item_.settings.logprobs, codec_);
    logprobs_.push_back(std::move(report.own));
    top_.push_back(std::move(report.top));
  }
}

Piece PromptScores::TakePiece() {
  Piece piece;
  piece.echo = true;
  piece.text = item_.prompt_text;
  piece.token_ids = item_.prompt;
  piece.logprobs = std::move(logprobs_);
  piece.top = std::move(top_);
  return piece;
}

HostTensor PromptScores::TakeLogits() {
  HostTensor tensor;
  tensor.name = "logits";
  tensor.shape = {static_cast<int64_t>(item_.prompt.size()), vocab_};
  tensor.data = std::move(logits_);
  return tensor;
}

}  // namespace longview::models
