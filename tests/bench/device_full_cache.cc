#include "tests/bench/device_full_cache.h"

#include <cstdio>
#include <cstdlib>

#include "models/layers/span_rows.h"
#include "tests/bench/full_cache_step.h"

namespace longview::bench {

using models::DeviceLsContext;

namespace {

kernels::CacheShape ShapeOf(const DeviceLsContext& context) {
  kernels::CacheShape shape = FullShape(*context.config, models::SpanType(context.compute));
  shape.form = kernels::BlockForm::kRows;
  return shape;
}

kernels::ProjectionCache::Options OptionsOf(int sequences, kernels::BlockMemory* memory) {
  kernels::ProjectionCache::Options options;
  options.step_sequences = sequences;
  options.memory = memory;
  return options;
}

int64_t BudgetOf(const DeviceLsContext& context, int sequences, int64_t tokens) {
  return sequences * ShapeOf(context).SequenceBytes(0, tokens, 1);
}

}  // namespace

int64_t DeviceFullCache::CacheBytes(const DeviceLsContext& context, int sequences, int64_t tokens) {
  return kernels::ProjectionCache::MemoryBytes(ShapeOf(context), OptionsOf(sequences, nullptr),
                                               BudgetOf(context, sequences, tokens));
}

DeviceFullCache::DeviceFullCache(const DeviceLsContext& context, int sequences, int64_t tokens)
    : device_(*context.device),
      shape_(models::DecodeShapeOf(*context.config, context.compute)),
      weights_(models::DecodeWeightsOf(*context.weights)),
      blocks_(device_.api(), device_.index(), device_.stream()),
      budget_(BudgetOf(context, sequences, tokens)),
      cache_(kernels::ProjectionCache::Create(ShapeOf(context), OptionsOf(sequences, &blocks_),
                                              &budget_)),
      steps_(device_.api(), device_.index(), device_.stream()),
      logits_(device_, static_cast<size_t>(sequences * shape_.vocab) * sizeof(float)) {
  if (cache_ == nullptr) throw models::DeviceError(device_.name() + ": no room for a full cache");
  step_ = std::make_unique<kernels::CacheStep>(cache_.get());
  const std::vector<int32_t> last(static_cast<size_t>(sequences), static_cast<int32_t>(tokens - 1));
  const FullCacheStep largest(shape_, weights_, *cache_, *step_, last);
  device_.Check(steps_.Reserve(largest.list_bytes(), largest.buffer_bytes()), "full decode steps");
}

DeviceFullCache::~DeviceFullCache() {
  step_.reset();
  cache_.reset();  // Its blocks go back through the device.
}

std::vector<float> DeviceFullCache::Step(std::span<kernels::CacheSequence* const> sequences) {
  std::vector<int32_t> positions;
  for (kernels::CacheSequence* sequence : sequences) {
    positions.push_back(static_cast<int32_t>(sequence->tokens()));
    if (!step_->Append(kernels::CacheStep::kDecode, sequence, {&kNextId, 1})) {
      std::fprintf(stderr, "no room for another token\n");
      std::exit(1);
    }
  }
  FullCacheStep step(shape_, weights_, *cache_, *step_, positions);
  KERNEL_CHECK(step.buffer_bytes() <= steps_.buffer_bytes());
  device_.Check(steps_.Run(step, step.key(), step.list_bytes()), "a full decode step");
  const size_t count = sequences.size() * static_cast<size_t>(shape_.vocab);
  device_.Check(device_.api().copy_out(device_.stream(), logits_.data(),
                                       step.Logits(steps_.buffers()), count * sizeof(float)),
                "logits");
  device_.Wait();
  step_->End();
  const auto* logits = reinterpret_cast<const float*>(logits_.data());
  return {logits, logits + count};
}

}  // namespace longview::bench
