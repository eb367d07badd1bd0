#include "models/encoder/run.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "models/encoder/facts.h"
#include "models/encoder/family.h"
#include "models/encoder/item.h"
#include "models/model.h"
#include "models/text/code_point_index.h"
#include "models/text/scores.h"
#include "models/text/tokenizer.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

HostTensor Floats(const std::string& name, std::vector<int64_t> shape, const float* values,
                  int64_t stride = 1) {
  HostTensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  tensor.data.resize(static_cast<size_t>(count) * sizeof(float));
  if (stride == 1) {
    if (count > 0) std::memcpy(tensor.data.data(), values, tensor.data.size());
    return tensor;
  }
  auto* out = reinterpret_cast<float*>(tensor.data.data());
  for (int64_t i = 0; i < count; ++i) out[i] = values[i * stride];
  return tensor;
}

class AnswerMaker {
 public:
  AnswerMaker(const EncoderFacts& facts, const Tokenizer* tokenizer, const EncoderItem& item,
              const HeadOutput& output, const float* rows)
      : facts_(facts), tokenizer_(tokenizer), item_(item), output_(output), rows_(rows) {}

  Answer Make() {
    Answer answer;
    answer.usage = item_.usage();
    for (const std::string& name : item_.tensors) answer.tensors.push_back(Tensor(name));
    if (!item_.typed) return answer;
    switch (item_.task) {
      case Task::kTextClassification:
      case Task::kTextPairClassification:
        answer.labels = RankLabels(output_.logits, facts_.labels, facts_.problem_type, item_.top_k);
        break;
      case Task::kRerank:
        answer.pair_score = {Activate(output_.logits[0]), output_.logits[0]};
        break;
      case Task::kMultipleChoice:
        answer.labels = RankChoices();
        break;
      case Task::kTokenClassification:
        answer.entities = Entities();
        break;
      case Task::kQuestionAnswering:
        answer.answers = Answers();
        break;
      case Task::kFillMask:
        answer.masks = Masks();
        break;
      default:
        break;
    }
    return answer;
  }

 private:
  int64_t Tokens() const { return item_.sequences[0].tokens(); }

  HostTensor Tensor(const std::string& name) const {
    if (name == "embedding") return Embedding(name);
    if (item_.task == Task::kMultiVector) {
      const auto size = static_cast<int64_t>(output_.token_rows.size());
      return Floats(name, {Tokens(), size / Tokens()}, output_.token_rows.data());
    }
    if (name == "last_hidden_state") return Floats(name, {Tokens(), facts_.width}, rows_);
    if (name == "start_logits") return Floats(name, {Tokens()}, output_.logits.data(), 2);
    if (name == "end_logits") return Floats(name, {Tokens()}, output_.logits.data() + 1, 2);
    if (name == "mask_logits") return MaskLogits(name);
    const auto size = static_cast<int64_t>(output_.logits.size());
    const bool per_token =
        item_.task == Task::kTokenClassification || item_.task == Task::kFillMask;
    if (!per_token) return Floats(name, {size}, output_.logits.data());
    return Floats(name, {Tokens(), size / Tokens()}, output_.logits.data());
  }

  HostTensor Embedding(const std::string& name) const {
    const auto size = static_cast<int64_t>(output_.embedding.size());
    const int64_t chunks = item_.chunks();
    if (chunks == 0) return Floats(name, {size}, output_.embedding.data());
    return Floats(name, {chunks, size / chunks}, output_.embedding.data());
  }

  // The vocabulary's logits of mask m: the head computed rows of masks only, or of all tokens.
  const float* MaskRow(size_t m) const {
    const size_t row = item_.Wants("logits") ? static_cast<size_t>(item_.masks[m]) : m;
    return output_.logits.data() + row * static_cast<size_t>(facts_.vocab);
  }

  HostTensor MaskLogits(const std::string& name) const {
    const auto vocab = static_cast<size_t>(facts_.vocab);
    HostTensor tensor;
    tensor.name = name;
    tensor.shape = {static_cast<int64_t>(item_.masks.size()), facts_.vocab};
    tensor.data.resize(item_.masks.size() * vocab * sizeof(float));
    for (size_t m = 0; m < item_.masks.size(); ++m) {
      std::memcpy(tensor.data.data() + m * vocab * sizeof(float), MaskRow(m),
                  vocab * sizeof(float));
    }
    return tensor;
  }

  float Activate(float logit) const {
    switch (item_.activation) {
      case ScoreActivation::kSigmoid:
        return 1 / (1 + std::exp(-logit));
      case ScoreActivation::kTanh:
        return std::tanh(logit);
      case ScoreActivation::kIdentity:
        break;
    }
    return logit;
  }

  std::vector<LabelScore> RankChoices() const {
    std::vector<std::string> names = item_.choices;
    for (size_t i = names.size(); i < item_.sequences.size(); ++i) {
      names.push_back(std::to_string(i));
    }
    return RankLabels(output_.logits, names, ProblemType::kSingleLabel, item_.top_k);
  }

  std::vector<EntitySpan> Entities() const {
    if (!item_.encoding) return {};
    return FindEntities(item_.text, TokensOfText(*item_.encoding, *tokenizer_), output_.logits,
                        facts_.labels, item_.aggregation);
  }

  // Spans in the document's code points; without text, token positions and what they decode to.
  std::vector<AnswerSpan> Answers() const {
    std::vector<float> starts, ends;
    for (size_t i = 0; i < output_.logits.size(); i += 2) {
      starts.push_back(output_.logits[i]);
      ends.push_back(output_.logits[i + 1]);
    }
    const CodePointIndex points(item_.text);
    std::vector<AnswerSpan> answers;
    for (const TokenSpan& span : BestSpans(starts, ends, item_.context_begin, item_.context_end,
                                           item_.max_answer_tokens, item_.top_k)) {
      AnswerSpan answer;
      answer.score = span.score;
      answer.probability = span.probability;
      if (item_.encoding) {
        answer.start = item_.encoding->offsets[span.first].begin;
        answer.end = item_.encoding->offsets[span.last].end;
        answer.text = points.Slice(answer.start, answer.end);
      } else {
        answer.start = span.first;
        answer.end = span.last + 1;
        answer.text = Decode(
            std::span(item_.sequences[0].ids).subspan(span.first, span.last + 1 - span.first));
      }
      answers.push_back(std::move(answer));
    }
    return answers;
  }

  std::vector<MaskFill> Masks() const {
    std::vector<MaskFill> masks;
    for (size_t m = 0; m < item_.masks.size(); ++m) {
      MaskFill mask;
      mask.position = item_.masks[m];
      const std::span logits(MaskRow(m), static_cast<size_t>(facts_.vocab));
      for (const ScoredToken& token : TopTokens(logits, item_.top_k)) {
        const int32_t id = token.id;
        mask.candidates.push_back({id, Decode({&id, 1}), token.logprob});
      }
      masks.push_back(std::move(mask));
    }
    return masks;
  }

  std::string Decode(std::span<const int32_t> ids) const {
    if (tokenizer_ == nullptr) return {};
    return tokenizer_->Decode(ids, /*skip_special=*/false).value_or("");
  }

  const EncoderFacts& facts_;
  const Tokenizer* const tokenizer_;
  const EncoderItem& item_;
  const HeadOutput& output_;
  const float* const rows_;
};

// `rows`: the wanted rows of the item's first sequence. `tokenizer` may be null.
// Thread-safe: a pure function.
Answer MakeAnswer(const EncoderFacts& facts, const Tokenizer* tokenizer, const EncoderItem& item,
                  const HeadOutput& output, const float* rows) {
  return AnswerMaker(facts, tokenizer, item, output, rows).Make();
}

}  // namespace

EncoderTaskRun::EncoderTaskRun(const PlacedEncoder& encoder, const EncoderBackEnd& back,
                               std::span<const Item* const> items, ScratchPool& scratch,
                               TeamChoice* teams, RunTimes* times)
    : encoder_(encoder),
      back_(back),
      scratch_(scratch),
      times_(times),
      turn_(teams),
      dropped_(items.size()) {
  turn_.Begin(items);
  first_sequence_.push_back(0);
  for (const Item* item : items) {
    items_.push_back(static_cast<const EncoderItem*>(item));
    first_sequence_.push_back(first_sequence_.back() +
                              static_cast<int>(items_.back()->sequences.size()));
  }
}

bool EncoderTaskRun::Advance() {
  if (!status_.ok()) return false;
  bool more = false;
  {
    const TeamTurn::Part part(turn_);
    status_ = GuardTorch(encoder_.facts().family, [&] { more = RunLayer(); });
  }
  if (status_.ok() && !more) turn_.End();
  return status_.ok() && more;
}

bool EncoderTaskRun::RunLayer() {
  if (!batch_) {
    std::vector<const EncoderSequence*> sequences;
    for (const EncoderItem* item : items_) {
      for (const EncoderSequence& sequence : item->sequences) sequences.push_back(&sequence);
    }
    batch_ = encoder_.Begin(sequences, scratch_, times_);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (dropped_[i]) Drop(static_cast<int>(i));
    }
  }
  if (batch_->Advance()) return true;
  RunHeads();
  return false;
}

void EncoderTaskRun::RunHeads() {
  std::vector<HeadInput> inputs;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (dropped_[i]) continue;
    HeadInput& input = inputs.emplace_back();
    input.item = items_[i];
    input.first_sequence = first_sequence_[i];
    for (int s = first_sequence_[i]; s < first_sequence_[i + 1]; ++s) {
      input.rows.push_back(batch_->Rows(s));
    }
  }
  std::vector<HeadOutput> computed = encoder_.ComputeHeads(*batch_, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    back_.sentence->Finish(*inputs[i].item, inputs[i].rows[0], *back_.pool, computed[i]);
  }
  outputs_.resize(items_.size());
  auto next = computed.begin();
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!dropped_[i]) outputs_[i] = std::move(*next++);
  }
}

void EncoderTaskRun::Drop(int i) {
  dropped_[i] = true;
  turn_.Spoil();
  if (!batch_) return;
  for (int s = first_sequence_[i]; s < first_sequence_[i + 1]; ++s) batch_->Drop(s);
}

absl::StatusOr<Answer> EncoderTaskRun::Take(int i) {
  if (!status_.ok()) return status_;
  if (dropped_[i] || outputs_.empty()) return absl::CancelledError("the item was dropped");
  return MakeAnswer(encoder_.facts(), back_.tokenizer, *items_[i], outputs_[i],
                    batch_->Rows(first_sequence_[i]));
}

}  // namespace longview::models
