#include "tests/bench/lm_contenders.h"

#include <cstdio>
#include <cstdlib>

#include "tests/bench/random_cache.h"

namespace longview::bench {
namespace {

double WeightBytes(const models::LsDecoder& decoder) {
  double elements = 0;
  const auto add = [&](const models::DenseLayer& layer) {
    elements += static_cast<double>(layer.linear.in() * layer.out());
  };
  for (const models::LsLmLayer& layer : decoder.weights().layers) {
    for (const auto* dense : {&layer.project, &layer.out, &layer.expand, &layer.contract}) {
      add(*dense);
    }
  }
  add(*decoder.weights().logits);
  return elements * static_cast<double>(models::ElementBytes(decoder.context().compute));
}

}  // namespace

std::string DecodeCase::Text() const {
  char text[64];
  std::snprintf(text, sizeof text, "%7ld %3d  %s", static_cast<long>(context), batch,
                dtype.c_str());
  return text;
}

double RowBytes(const models::LsDecoder& decoder) {
  return 2.0 * decoder.config().width * decoder.config().layers *
         static_cast<double>(kernels::SizeOf(decoder.context().block_type()));
}

Projections::Projections(models::LsDecoder& decoder, const DecodeCase& what)
    : decoder_(decoder), case_(what) {
  for (int i = 0; i < what.batch; ++i) {
    sequences_.push_back(std::make_unique<models::CachedSequence>(
        RandomSequence(&decoder.projection_cache(), what.context, static_cast<uint32_t>(i))));
    states_.push_back(&sequences_.back()->cache());
    feeds_.push_back({sequences_.back().get(),
                      {&kNextId, 1},
                      models::DecoderPhase::kDecode,
                      models::WantedLogits::kLast});
  }
  held_bytes_ = decoder.cache().used;
  decoder.set_times(&times_);
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
  const models::LsLmConfig& config = decoder_.config();
  const auto entries =
      static_cast<double>(config.window + config.pattern().SegmentIds(case_.context));
  const double tables = entries * config.width * config.layers *
                        static_cast<double>(models::ElementBytes(decoder_.context().compute));
  const auto keys = static_cast<double>(config.pattern().VisibleKeys(case_.context));
  return WeightBytes(decoder_) + tables + keys * case_.batch * RowBytes(decoder_);
}

double Projections::closed_form() const {
  return static_cast<double>(case_.batch * cache().shape().SequenceBytes(0, case_.context, 1));
}

FullCache::FullCache(const models::LsDecoder& decoder, const DecodeCase& what, int64_t longest)
    : decoder_(decoder), case_(what), full_(decoder, what.batch, longest) {
  for (int i = 0; i < what.batch; ++i) {
    sequences_.push_back(RandomSequence(&full_.cache(), what.context, static_cast<uint32_t>(i)));
  }
  for (kernels::CacheSequence& sequence : sequences_) pointers_.push_back(&sequence);
}

double FullCache::read_bytes() const {
  return WeightBytes(decoder_) +
         static_cast<double>(case_.context + 1) * case_.batch * RowBytes(decoder_);
}

}  // namespace longview::bench
