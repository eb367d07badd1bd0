#include "models/stack/decoder.h"

#include <utility>

#include "models/stack/pass.h"

namespace longview::models {
StackDecoder::StackDecoder(Parts parts)
    : CachedDecoder({parts.config.family, parts.config.vocab}, parts.max_tokens),
      parts_(std::move(parts)),
      tables_(parts_.config),
      context_(parts_.config, parts_.weights, parts_.compute, pool_) {
  context_.tables = &tables_;
}

absl::StatusOr<std::unique_ptr<StackDecoder>> StackDecoder::Create(Parts parts) {
  std::unique_ptr<StackDecoder> decoder(new StackDecoder(std::move(parts)));
  StackContext& context = decoder->context_;
  absl::Status status = decoder->Reserve(StackCacheShape(*context.config, context.block_type()),
                                         decoder->parts_.room, context.config->family);
  if (!status.ok()) return status;
  context.cache = &decoder->projection_cache();
  decoder->set_costs(std::make_unique<StackCosts>(context, decoder->max_tokens(), 0));
  return decoder;
}

int StackDecoder::prefill_granule() const { return static_cast<int>(kernels::kBlockSlots); }

std::unique_ptr<TokenPass> StackDecoder::MakePass(std::vector<TokenRun> runs,
                                                  ScratchKeeper& scratch, EncoderTimes* times) {
  return std::make_unique<StackPass>(context_, scratch, std::move(runs), times);
}

}  // namespace longview::models
