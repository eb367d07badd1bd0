#include "tests/bench/lm_contenders.h"

#include <cstdio>
#include <cstdlib>

#include "tests/bench/random_cache.h"

namespace longview::bench {

std::string DecodeCase::Text() const {
  char text[64];
  std::snprintf(text, sizeof text, "%7ld %3d  %s", static_cast<long>(context), batch,
                dtype.c_str());
  return text;
}

double DecodedModel::ElementBytes() const {
  return static_cast<double>(models::ElementBytes(compute));
}

double DecodedModel::WeightBytes() const {
  const double width = config.width;
  const double layer =
      width * (3 * width + config.columns()) + width * width + 2 * width * config.intermediate;
  return config.layers * layer * (int8 ? 1 : ElementBytes()) +
         config.vocab * width * ElementBytes();
}

double DecodedModel::RowBytes() const {
  return 2.0 * config.width * config.layers * static_cast<double>(kernels::SizeOf(blocks));
}

MakeSequence RandomOnHost(const DecodeCase& what) {
  return [tokens = what.context](kernels::ProjectionCache* cache, int index) {
    return RandomSequence(cache, tokens, static_cast<uint32_t>(index));
  };
}

Projections::Projections(models::ForwardDecoder& decoder, const DecodedModel& model,
                         const DecodeCase& what, const MakeSequence& make)
    : decoder_(decoder), model_(model), case_(what) {
  for (int i = 0; i < what.batch; ++i) {
    sequences_.push_back(
        std::make_unique<models::CachedSequence>(make(&decoder.projection_cache(), i)));
    feeds_.push_back({sequences_.back().get(),
                      {&kNextId, 1},
                      models::DecoderPhase::kDecode,
                      models::WantedLogits::kLast});
  }
  held_bytes_ = decoder.cache().used;
}

std::vector<float> Projections::Step() {
  const std::unique_ptr<models::DecoderStep> step = decoder_.Begin(feeds_);
  while (step->Advance()) {
  }
  if (!step->status().ok()) {
    std::fprintf(stderr, "%s\n", step->status().ToString().c_str());
    std::exit(1);
  }
  ++steps_;
  std::vector<float> logits;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const std::span<const float> row = step->Logits(static_cast<int>(i));
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

double Projections::read_bytes() const {
  const models::LsLmConfig& config = model_.config;
  const auto entries =
      static_cast<double>(config.window + config.pattern().SegmentIds(case_.context));
  const double tables = entries * config.width * config.layers * model_.ElementBytes();
  const auto keys = static_cast<double>(config.pattern().VisibleKeys(case_.context));
  return model_.WeightBytes() + tables + keys * case_.batch * model_.RowBytes();
}

void Projections::PrintState() const {
  const double row_bytes = case_.batch * model_.RowBytes();
  const auto context = static_cast<double>(case_.context);
  const double rows = model_.config.window + context / model_.config.segment * model_.config.rank;
  const auto closed_form =
      static_cast<double>(case_.batch * cache().shape().SequenceBytes(0, case_.context, 1));
  std::printf(
      "%s  state: %.3f MB, closed form %.3f; %.3f of w + T r / l rows, 1 / %.2f of T rows\n",
      case_.Text().c_str(), held_bytes_ * 1e-6, closed_form * 1e-6,
      held_bytes_ / (rows * row_bytes), context * row_bytes / held_bytes_);
}

FullCache::FullCache(std::unique_ptr<FullDecoder> full, const DecodedModel& model,
                     const DecodeCase& what, const MakeSequence& make)
    : full_(std::move(full)), model_(model), case_(what) {
  for (int i = 0; i < what.batch; ++i) {
    sequences_.push_back(std::make_unique<models::CachedSequence>(make(&full_->cache(), i)));
    pointers_.push_back(sequences_.back().get());
  }
}

double FullCache::read_bytes() const {
  return model_.WeightBytes() +
         static_cast<double>(case_.context + 1) * case_.batch * model_.RowBytes();
}

}  // namespace longview::bench
