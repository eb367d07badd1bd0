// What tokens of the language model cost: operations in closed form, bytes exactly.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/cst/buffers.h"
#include "models/generation/decoder.h"
#include "models/generation/decoder_rates.h"

namespace longview::models {

class CstTokenWork final : public TokenWork {
 public:
  explicit CstTokenWork(const CstConfig& config) : config_(config) {}
  double Linear() const override;
  double Attention(int64_t t) const override;
  double Rows() const override;

 private:
  const CstConfig& config_;
};

class CstLmCosts final : public DecoderCosts {
 public:
  // Borrowed arguments outlive the costs.
  CstLmCosts(const CstContext& context, const kernels::CacheShape& shape, int max_tokens)
      : context_(context), shape_(shape), max_tokens_(max_tokens), work_(*context.config) {}

  // Before serving only.
  void set_rates(const DecoderRates& rates) { rates_ = rates; }

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double PrefillSeconds(int64_t t) const override { return rates_.PrefillSeconds(work_, t); }
  double DecodeSeconds(int64_t t) const override { return rates_.DecodeSeconds(work_, t); }
  double StepSeconds() const override { return rates_.step_seconds; }

 private:
  const CstContext& context_;
  const kernels::CacheShape shape_;
  const int max_tokens_;
  const CstTokenWork work_;
  DecoderRates rates_;
};

}  // namespace longview::models
