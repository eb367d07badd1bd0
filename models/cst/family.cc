#include "models/cst/family.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/layers/block_tail.h"

namespace longview::models {
namespace {

// The id that pad_mask_source `nonzero_id` masks.
constexpr int kMaskedId = 0;

}  // namespace

EncoderFacts CstFacts(const CstConfig& config) {
  EncoderFacts facts = FactsOfText("cst", config);
  facts.types = config.types;
  facts.max_tokens = config.most_tokens;
  facts.has_pooler = config.head == CstHead::kPooled && config.pooler;
  facts.pooler_reads = RowsRead::kAll;
  facts.head_reads = RowsRead::kAll;
  facts.cls_reads = std::nullopt;
  if (config.id_zero_masks) facts.pad = kMaskedId;
  switch (config.head) {
    case CstHead::kMaskedLm:
      facts.head = EncoderHead::kMaskedLm;
      facts.head_reads = RowsRead::kFirst;
      facts.labels.clear();
      break;
    case CstHead::kMatching:
      facts.head = EncoderHead::kPairClassification;
      facts.pairs = PairForm::kSeparate;
      break;
    case CstHead::kPooled:
      facts.head = EncoderHead::kSequenceClassification;
      facts.pairs = PairForm::kJoined;
      break;
    default:
      facts.head = EncoderHead::kSequenceClassification;
  }
  return facts;
}

// A masked id belongs to the document, unlike padding: its place counts.
absl::Status Cst::Place(const std::string&, EncoderSequence& sequence) const {
  for (int t = 0; t < sequence.tokens(); ++t) {
    sequence.positions.push_back(t);
    if (config_.id_zero_masks && sequence.ids[t] == kMaskedId) {
      sequence.roles[t] = kernels::kMaskedToken;
    }
  }
  return absl::OkStatus();
}

// Two panel results are alive at a time: the expanded one and what follows it.
size_t Cst::WorkspaceBytes(Sequences sequences) const {
  return ScratchBytes(sequences) +
         std::max(TailPanelBytes(config_.width, config_.intermediate, context_.compute),
                  TailPanelBytes(3 * config_.width, 0, context_.compute));
}

// Per layer, with S = ceil(n / L): projections 3 n d^2 and 3 S d^2, the output n d^2, the FFN
// 2 n d f; 2 n d per local key that a token sees, 2 S d per slice, n d for pooling. The `mlp`
// mixer: 2 n d h instead of local projections and keys.
EncoderWork Cst::WorkOf(const EncoderSequence& sequence) const {
  const double n = sequence.tokens(), d = config_.width, f = config_.intermediate;
  const double slices = std::ceil(n / config_.slice);
  const double keys = std::min<double>(n, config_.local_keys());
  const bool attends = config_.mixer_size == 0;
  EncoderWork work;
  work.rows = 2 * n * config_.embedding_width;
  if (config_.embedding_width != config_.width) work.linear += n * d * config_.embedding_width;
  for (int layer = 0; layer < config_.layers; ++layer) {
    const bool last = layer + 1 == config_.layers;
    const double outputs = last ? static_cast<double>(sequence.wanted.size()) : n;
    const double out = config_.output_projection ? d * d : 0;
    work.linear += (attends ? 3 * n * d * d : 0) + 3 * slices * d * d + outputs * (out + 2 * d * f);
    if (config_.slice_pooling == CstPooling::kLinear) work.linear += n * d * d;
    work.attention += 2 * n * d * (attends ? keys : config_.mixer_size);
    if (config_.relative_keys()) work.attention += n * d * keys;
    work.attention += 2 * slices * slices * d + n * d;
    work.rows += n * d * (attends ? 4 : 1) + 3 * slices * d + outputs * (2 * d + f);
  }
  return work;
}

}  // namespace longview::models
