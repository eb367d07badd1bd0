#include "models/led/step.h"

#include <memory>
#include <utility>

#include "models/generation/host_token_pass.h"
#include "models/led/sequence.h"
#include "models/stack/pass.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

PassStep::Rules RulesOf(const LedContext& context) {
  const StackConfig& config = *context.decoder.config;
  if (context.seat != nullptr) return DeviceRules(config.family, config.vocab);
  return {config.family, config.vocab};
}

std::unique_ptr<TokenPass> MakePass(const LedContext& context, ScratchKeeper& scratch,
                                    std::vector<TokenRun> runs, EncoderTimes* times) {
  const int64_t logit_rows = context.seat != nullptr ? kDeviceLogitRows : WantedRows(runs);
  auto pass = std::make_unique<StackPass>(context.decoder, std::move(runs), logit_rows);
  if (context.seat != nullptr) return context.seat->Run(std::move(pass), times);
  return std::make_unique<HostTokenPass>(std::move(pass), context.encoder, scratch, times);
}

}  // namespace

LedStep::LedStep(const LedContext& context, ScratchKeeper& scratch,
                 std::span<const DecoderFeed> feeds, EncoderTimes* times)
    : feeds_(feeds.begin(), feeds.end()),
      dropped_(feeds.size()),
      tokens_(RulesOf(context), feeds, [&context, &scratch, times](std::vector<TokenRun> runs) {
        return MakePass(context, scratch, std::move(runs), times);
      }) {}

void LedStep::Drop(int feed) {
  dropped_[static_cast<size_t>(feed)] = true;
  tokens_.Drop(feed);
}

// A document whose reading was given up is never attended to: its sequence is dropped too.
absl::Status LedStep::Run(bool* more) {
  *more = true;
  while (reading_ < feeds_.size() && (feeds_[reading_].encode == 0 || dropped_[reading_])) {
    ++reading_;
    begun_ = false;
  }
  if (reading_ == feeds_.size()) {
    *more = tokens_.Advance();
    return tokens_.status();
  }
  const DecoderFeed& feed = feeds_[reading_];
  LedDocument& document = static_cast<LedSequence*>(feed.sequence)->read();
  if (!begun_) {
    if (absl::Status status = document.Begin(feed.encode); !status.ok()) return status;
    begun_ = true;
  }
  bool left = false;
  if (absl::Status status = document.Advance(&left); !status.ok()) return status;
  if (!left) {
    ++reading_;
    begun_ = false;
  }
  return absl::OkStatus();
}

bool LedStep::Advance() {
  if (!status_.ok()) return false;
  bool more = false;
  const absl::Status thrown = GuardTorch("led", [&] { status_ = Run(&more); });
  if (!thrown.ok()) status_ = thrown;
  return status_.ok() && more;
}

}  // namespace longview::models
