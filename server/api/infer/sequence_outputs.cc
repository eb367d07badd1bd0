#include "server/api/infer/sequence_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace longview::server {
namespace {

using models::HostTensor;
using models::Piece;
using models::TensorType;

template <typename T>
void SetData(const std::vector<T>& values, HostTensor& tensor) {
  tensor.data.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
}

void SetTokenRows(const std::vector<const Piece*>& sequences, int32_t pad, HostTensor& tensor) {
  size_t longest = 0;
  for (const Piece* piece : sequences) longest = std::max(longest, piece->token_ids.size());
  std::vector<int64_t> rows(sequences.size() * longest, pad);
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i]->token_ids.begin(), sequences[i]->token_ids.end(),
              rows.begin() + static_cast<ptrdiff_t>(i * longest));
  }
  tensor.type = TensorType::kInt64;
  tensor.shape.push_back(static_cast<int64_t>(longest));
  SetData(rows, tensor);
}

}  // namespace

size_t TokenRowBytes(const std::vector<models::Answer>& answers) {
  size_t sequences = 0;
  size_t longest = 0;
  for (const models::Answer& answer : answers) {
    sequences += answer.sequences.size();
    for (const Piece& piece : answer.sequences) {
      longest = std::max(longest, piece.token_ids.size());
    }
  }
  return sequences * longest * sizeof(int64_t);
}

HostTensor JoinSequences(const PlannedOutput& output, const models::ModelInfo& info,
                         const std::vector<models::Answer>& answers) {
  std::vector<const Piece*> sequences;
  for (const models::Answer& answer : answers) {
    for (const Piece& piece : answer.sequences) sequences.push_back(&piece);
  }
  HostTensor joined;
  joined.name = output.spec.name;
  joined.shape = {static_cast<int64_t>(sequences.size())};
  if (output.kind == OutputKind::kTokenIds) {
    SetTokenRows(sequences, info.pad_token, joined);
  } else if (output.kind == OutputKind::kNumTokens) {
    std::vector<int64_t> counts;
    for (const Piece* piece : sequences) {
      counts.push_back(static_cast<int64_t>(piece->token_ids.size()));
    }
    joined.type = TensorType::kInt64;
    SetData(counts, joined);
  } else if (output.kind == OutputKind::kScores) {
    std::vector<float> scores;
    for (const Piece* piece : sequences) scores.push_back(piece->score);
    joined.type = TensorType::kFp32;
    SetData(scores, joined);
  } else {
    joined.type = TensorType::kBytes;
    for (const Piece* piece : sequences) joined.strings.push_back(piece->text);
  }
  return joined;
}

absl::StatusOr<HostTensor> JoinTokenLogprobs(const PlannedOutput& output,
                                             const std::vector<models::Answer>& answers) {
  const std::optional<Piece>& prompt = answers.front().prompt;
  if (!prompt || prompt->logprobs.size() != prompt->token_ids.size()) {
    return absl::InternalError("the model gave no log-probabilities of the prompt");
  }
  std::vector<float> values;
  for (const models::TokenLogprob& token : prompt->logprobs) {
    values.push_back(std::isnan(token.logprob) ? 0 : token.logprob);
  }
  HostTensor joined;
  joined.name = output.spec.name;
  joined.type = TensorType::kFp32;
  joined.shape = {1, static_cast<int64_t>(values.size())};
  SetData(values, joined);
  return joined;
}

}  // namespace longview::server
