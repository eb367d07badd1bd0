#include "tests/kernels/cuda/support/decode_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace longview::kernels::cuda::testing {

DecodeModel::DecodeModel(TestDevice& device, NamedWeights& weights)
    : device_(device),
      shape_(weights.shape()),
      blocks_(device.api(), 0, device.stream()),
      budget_(int64_t{1} << 22),
      runner_(device.api(), 0, device.stream()) {
  Upload(weights);
  CacheShape cache;
  cache.layers = kDecodeLayers;
  cache.kv_heads = shape_.heads();
  cache.Dk = cache.Dv = shape_.dim();
  cache.dtype = shape_.dtype;
  cache.form = BlockForm::kRows;
  cache.strips = StripsOf(shape_.attention);
  cache.pool_columns = shape_.state_columns();
  cache.pool_widths = {shape_.dim(), shape_.dim()};
  ProjectionCache::Options options;
  options.step_sequences = 4;
  options.memory = &blocks_;
  cache_ = ProjectionCache::Create(cache, options, &budget_);
  EXPECT_EQ(runner_.Reserve(shape_, cache, {3, kMostTokens}), 0);
}

DecodeModel::~DecodeModel() {
  cache_.reset();
  EXPECT_EQ(blocks_.status(), 0);
}

std::vector<std::vector<float>> DecodeModel::Step(const std::vector<CacheSequence*>& sequences,
                                                  const std::vector<int32_t>& ids) {
  CacheStep step(cache_.get());
  std::vector<DecodeToken> tokens;
  for (size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_TRUE(step.Append(CacheStep::kDecode, sequences[i], {&ids[i], 1}));
    tokens.push_back({ids[i], sequences[i]});
  }
  DecodeStep decode(shape_, weights_, *cache_, step, tokens);
  const float* logits = nullptr;
  EXPECT_EQ(runner_.Run(decode, &logits), 0);
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(device_.Download(logits + i * shape_.vocab, shape_.vocab));
  }
  return rows;
}

const void* DecodeModel::Typed(const std::vector<float>& values) {
  if (shape_.dtype == DType::kFloat32) return device_.Upload(values);
  return device_.Upload(Rounded(values, shape_.dtype));
}

ConstantBlock DecodeModel::Constant(const std::pair<Row, Row>& row) {
  const auto block = [&](const Row& of) {
    const int pitch = BlockPitch(shape_.dim());
    std::vector<float> values(static_cast<size_t>(shape_.heads() * kBlockSlots * pitch));
    for (int i = 0; i < shape_.heads() * kBlockSlots; ++i) {
      const int head = i / kBlockSlots;
      std::copy_n(of.begin() + head * shape_.dim(), shape_.dim(), values.begin() + i * pitch);
    }
    return const_cast<void*>(Typed(values));
  };
  return {block(row.first), block(row.second)};
}

void DecodeModel::Upload(NamedWeights& weights) {
  const int width = shape_.width;
  const auto linear = [&](const std::string& name, int64_t out, int64_t in) -> DecodeLinear {
    return {Typed(weights.Matrix(name, out, in)),
            device_.Upload(weights.Bias(name + ".bias", out))};
  };
  const auto norm = [&](const std::string& name) -> RowNorm {
    return {device_.Upload(weights.Gamma(name)), device_.Upload(weights.Beta(name)), kDecodeEps};
  };
  weights_.segment_ids = DecodeDefinition::SegmentIds(shape_);
  for (int i = 0; i < kDecodeLayers; ++i) {
    DecodeLayer& layer = weights_.layers.emplace_back();
    layer.project = linear(Name(i, "project"), shape_.projected(), width);
    layer.out = linear(Name(i, "out"), width, width);
    layer.expand = linear(Name(i, "expand"), shape_.intermediate, width);
    layer.contract = linear(Name(i, "contract"), width, shape_.intermediate);
    layer.norm1 = norm(Name(i, "norm1"));
    layer.norm2 = norm(Name(i, "norm2"));
    layer.window_norm = norm(Name(i, "window"));
    layer.segment_norm = norm(Name(i, "segment"));
    layer.window_add = device_.Upload(weights.Bias(Name(i, "window_add"), width));
    layer.distance_add = device_.Upload(weights.Bias(Name(i, "distance_add"), width));
    layer.window_table = Typed(weights.Bias(Name(i, "windows"), shape_.attention.window * width));
    layer.segment_table = Typed(weights.Bias(Name(i, "segments"), weights_.segment_ids * width));
    layer.zero_segments = Constant(DecodeDefinition(weights).Zero(i, "segment"));
    layer.zero_window = Constant(DecodeDefinition(weights).Zero(i, "window"));
  }
  weights_.zeros = device_.Upload(std::vector<int32_t>(64));
  weights_.words = device_.Upload(weights.Get("words", shape_.vocab * width, 1));
  weights_.logits = linear("logits", shape_.vocab, width);
}

}  // namespace longview::kernels::cuda::testing
