// A whole decode step of Transformer-LS on a device, against the model by definition in double
// precision: a cache in the device's memory, forks that part inside a segment, a beginning that is
// found again; and equal bits alone and in company.
#include "kernels/cuda/token/decode_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "kernels/base/bfloat16.h"
#include "kernels/cuda/device_blocks.h"
#include "kernels/cuda/token/decode_runner.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::TestDevice;
using testing::TestDevices;

constexpr float kEps = 1e-5f;
constexpr int kLayers = 2, kMostTokens = 200;

enum class Schedule { kPaper, kBlocks, kBlocksZeroMemory };

DecodeShape Shape(Schedule schedule, bool pre_norm, DType dtype) {
  DecodeShape shape;
  shape.width = 32;
  shape.intermediate = 40;
  shape.vocab = 29;
  shape.attention = {2, 20, 8, 3};
  if (schedule != Schedule::kPaper) {
    shape.attention.block = 24;
    shape.attention.memory = 56;
    shape.attention.zero_memory = schedule == Schedule::kBlocksZeroMemory;
  }
  shape.pre_norm = pre_norm;
  shape.activation = RowActivation::kRelu;
  shape.dtype = dtype;
  return shape;
}

using Row = std::vector<double>;

// Weights by name, made up where they are first asked for; exact in bfloat16.
class Weights {
 public:
  explicit Weights(const DecodeShape& shape) : shape_(shape) {}

  const DecodeShape& shape() const { return shape_; }

  const std::vector<float>& Get(const std::string& name, int64_t count, double scale,
                                double mean = 0) {
    std::vector<float>& values = values_[name];
    while (std::ssize(values) < count) {
      const double value = mean + scale * normal_(random_);
      values.push_back(BFloat16ToFloat(FloatToBFloat16(static_cast<float>(value))));
    }
    return values;
  }
  const std::vector<float>& Matrix(const std::string& name, int64_t out, int64_t in) {
    return Get(name, out * in, 1.2 / std::sqrt(static_cast<double>(in)));
  }
  const std::vector<float>& Bias(const std::string& name, int64_t count) {
    return Get(name, count, 0.3);
  }
  const std::vector<float>& Gamma(const std::string& name) {
    return Get(name + ".gamma", shape_.width, 0.2, 1);
  }
  const std::vector<float>& Beta(const std::string& name) {
    return Get(name + ".beta", shape_.width, 0.2);
  }

 private:
  const DecodeShape shape_;
  std::mt19937 random_{3};
  std::normal_distribution<double> normal_{0, 1};
  std::map<std::string, std::vector<float>> values_;
};

std::string Name(int layer, const char* name) { return std::to_string(layer) + name; }

// The model by definition: logits of a text's last token.
class Definition {
 public:
  explicit Definition(Weights& weights)
      : weights_(weights), shape_(weights.shape()), pattern_(shape_.attention) {}

  Row Logits(std::span<const int32_t> ids) {
    std::vector<Row> x;
    const auto& words = weights_.Get("words", shape_.vocab * shape_.width, 1);
    for (const int32_t id : ids) {
      Row row(words.begin() + id * shape_.width, words.begin() + (id + 1) * shape_.width);
      x.push_back(shape_.pre_norm ? Norm(row, Name(0, "norm1")) : row);
    }
    for (int layer = 0; layer < kLayers; ++layer) Layer(layer, x);
    return Linear(x.back(), "logits", shape_.vocab);
  }

 private:
  Row Linear(const Row& x, const std::string& name, int64_t out) {
    const auto in = std::ssize(x);
    const auto& weight = weights_.Matrix(name, out, in);
    const auto& bias = weights_.Bias(name + ".bias", out);
    Row y(bias.begin(), bias.begin() + out);
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) y[o] += weight[o * in + i] * x[i];
    }
    return y;
  }

  Row Norm(const Row& x, const std::string& name) {
    double mean = 0, squares = 0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (const double value : x) squares += (value - mean) * (value - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
    Row normed;
    for (size_t i = 0; i < x.size(); ++i) {
      normed.push_back((x[i] - mean) * factor * weights_.Gamma(name)[i] + weights_.Beta(name)[i]);
    }
    return normed;
  }

  static Row Part(const Row& row, int64_t first, int64_t count) {
    return {row.begin() + first, row.begin() + first + count};
  }

  // Rank k of the segment that begins at `first`, weighed by the scores in y: means of `values`'
  // columns from `from` on.
  Row Page(const std::vector<Row>& y, const std::vector<Row>& values, int first, int k,
           int64_t from) const {
    Row page;
    for (int head = 0; head < shape_.heads(); ++head) {
      const auto column = 3 * shape_.width + head * pattern_.rank + k;
      double total = 0;
      Row sum(static_cast<size_t>(shape_.dim()));
      for (int t = first; t < first + pattern_.segment; ++t) {
        const double weight = std::exp(y[t][column]);
        total += weight;
        for (int d = 0; d < shape_.dim(); ++d) {
          sum[d] += weight * values[t][from + head * shape_.dim() + d];
        }
      }
      for (const double value : sum) page.push_back(value / total);
    }
    return page;
  }

  struct Key {
    Row key, value;
    int64_t entry = 0;  // Of its table.
    bool window = false;
  };

  Row Attend(int layer, const Row& y, const std::vector<Key>& keys) {
    const int width = shape_.width, dim = shape_.dim();
    const auto& window_add = weights_.Bias(Name(layer, "window_add"), width);
    const auto& distance_add = weights_.Bias(Name(layer, "distance_add"), width);
    const auto& windows = weights_.Bias(Name(layer, "windows"), pattern_.window * width);
    const auto& segments = weights_.Bias(Name(layer, "segments"), SegmentIds(shape_) * width);
    Row z;
    for (int head = 0; head < shape_.heads(); ++head) {
      double total = 0;
      Row sum(static_cast<size_t>(dim));
      for (const Key& key : keys) {
        double score = 0;
        for (int d = 0; d < dim; ++d) {
          const int at = head * dim + d;
          const int64_t entries = key.window ? pattern_.window : SegmentIds(shape_);
          const auto& table = key.window ? windows : segments;
          score += (y[at] + (key.window ? window_add[at] : 0)) * key.key[at] +
                   (y[at] + (key.window ? distance_add[at] : 0)) *
                       table[(head * entries + key.entry) * dim + d];
        }
        const double weight = std::exp(score / std::sqrt(dim));
        total += weight;
        for (int d = 0; d < dim; ++d) sum[d] += weight * key.value[head * dim + d];
      }
      for (const double value : sum) z.push_back(value / total);
    }
    return z;
  }

  // Key and value of a projected row, normed.
  Key Normed(const Row& y, int layer, const char* norm) {
    const int width = shape_.width;
    return {Norm(Part(y, width, width), Name(layer, norm)),
            Norm(Part(y, 2 * width, width), Name(layer, norm))};
  }

  void Layer(int layer, std::vector<Row>& x) {
    const int width = shape_.width, tokens = static_cast<int>(x.size());
    const auto project = [&](const Row& row) {
      return Linear(row, Name(layer, "project"), shape_.projected());
    };
    std::vector<Row> y;
    std::vector<Key> places, late, early;
    for (const Row& row : x) {
      y.push_back(project(row));
      places.push_back(Normed(y.back(), layer, "window"));
    }
    for (int first = 0; first + pattern_.segment <= tokens; first += pattern_.segment) {
      for (int k = 0; k < pattern_.rank; ++k) {
        late.push_back({Norm(Page(y, y, first, k, width), Name(layer, "segment")),
                        Norm(Page(y, y, first, k, 2 * width), Name(layer, "segment"))});
        early.push_back(Normed(project(Page(y, x, first, k, 0)), layer, "segment"));
      }
    }
    const Row nothing = project(ZeroInput(layer));
    const auto see = [](Key key, int64_t entry, bool window) {
      key.entry = entry;
      key.window = window;
      return key;
    };
    for (int t = 0; t < tokens; ++t) {
      std::vector<Key> seen;
      const int pages = t / pattern_.segment * pattern_.rank;
      const int block = pattern_.paper() ? 0 : t / pattern_.block * pattern_.block;
      const int per = pattern_.rank, oldest = (block - pattern_.memory) / pattern_.segment * per;
      for (int j = pattern_.paper() ? 0 : oldest; j < pages; ++j) {
        if (j < 0 && !pattern_.zero_memory) continue;
        const bool before = j < block / pattern_.segment * per;
        seen.push_back(see(j < 0    ? Normed(nothing, layer, "segment")
                           : before ? early[j]
                                    : late[j],
                           pages - 1 - j, false));
      }
      for (int p = t - pattern_.window + 1; p <= t; ++p) {
        if (p < 0 && !pattern_.zero_memory) continue;
        seen.push_back(see(p < 0 ? Normed(nothing, layer, "window") : places[p], t - p, true));
      }
      x[t] = Finish(layer, x[t], Attend(layer, y[t], seen));
    }
  }

  Row Finish(int layer, Row x, const Row& z) {
    const Row attended = Linear(z, Name(layer, "out"), shape_.width);
    for (size_t i = 0; i < x.size(); ++i) x[i] += attended[i];
    x = Norm(x, Name(layer, shape_.pre_norm ? "norm2" : "norm1"));
    Row wide = Linear(x, Name(layer, "expand"), shape_.intermediate);
    for (double& value : wide) value = std::max(value, 0.0);
    const Row added = Linear(wide, Name(layer, "contract"), shape_.width);
    for (size_t i = 0; i < x.size(); ++i) x[i] += added[i];
    if (!shape_.pre_norm) return Norm(x, Name(layer, "norm2"));
    return layer + 1 == kLayers ? x : Norm(x, Name(layer + 1, "norm1"));
  }

 public:
  static int64_t SegmentIds(const DecodeShape& shape) {
    return shape.attention.MostSegmentIds(kMostTokens);
  }

  // A layer's places before the text, [width] each.
  Row ZeroInput(int layer) {
    if (!shape_.pre_norm) return Row(static_cast<size_t>(shape_.width));
    const auto& beta = weights_.Beta(Name(layer, "norm1"));
    return {beta.begin(), beta.end()};
  }
  std::pair<Row, Row> Zero(int layer, const char* norm) {
    const Key key =
        Normed(Linear(ZeroInput(layer), Name(layer, "project"), shape_.projected()), layer, norm);
    return {key.key, key.value};
  }

 private:
  Weights& weights_;
  const DecodeShape shape_;
  const SchedulePattern pattern_;
};

// The same on a device.
class DeviceModel {
 public:
  DeviceModel(TestDevice& device, Weights& weights)
      : device_(device),
        shape_(weights.shape()),
        blocks_(device.api(), 0, device.stream()),
        budget_(int64_t{1} << 22),
        runner_(device.api(), 0, device.stream()) {
    Upload(weights);
    CacheShape cache;
    cache.layers = kLayers;
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
  ~DeviceModel() {
    cache_.reset();
    EXPECT_EQ(blocks_.status(), 0);
  }

  CacheSequence Open(std::span<const int32_t> prompt) { return cache_->Open(prompt, Reuse::kAny); }

  size_t recorded() const { return runner_.recorded(); }

  // The next token of each; their logits.
  std::vector<std::vector<float>> Step(const std::vector<CacheSequence*>& sequences,
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

 private:
  const void* Typed(const std::vector<float>& values) {
    if (shape_.dtype == DType::kFloat32) return device_.Upload(values);
    return device_.Upload(testing::Rounded(values, shape_.dtype));
  }

  ConstantBlock Constant(const std::pair<Row, Row>& row) {
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

  void Upload(Weights& weights) {
    const int width = shape_.width;
    const auto linear = [&](const std::string& name, int64_t out, int64_t in) -> DecodeLinear {
      return {Typed(weights.Matrix(name, out, in)),
              device_.Upload(weights.Bias(name + ".bias", out))};
    };
    const auto norm = [&](const std::string& name) -> RowNorm {
      return {device_.Upload(weights.Gamma(name)), device_.Upload(weights.Beta(name)), kEps};
    };
    weights_.segment_ids = Definition::SegmentIds(shape_);
    for (int i = 0; i < kLayers; ++i) {
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
      layer.zero_segments = Constant(Definition(weights).Zero(i, "segment"));
      layer.zero_window = Constant(Definition(weights).Zero(i, "window"));
    }
    weights_.zeros = device_.Upload(std::vector<int32_t>(64));
    weights_.words = device_.Upload(weights.Get("words", shape_.vocab * width, 1));
    weights_.logits = linear("logits", shape_.vocab, width);
  }

  TestDevice& device_;
  const DecodeShape shape_;
  DecodeWeights weights_;
  DeviceBlocks blocks_;
  CacheBudget budget_;
  std::unique_ptr<ProjectionCache> cache_;
  DecodeRunner runner_;
};

std::vector<int32_t> Text(int tokens, int seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids;
  for (int i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(random() % 29));
  return ids;
}

struct Setting {
  Schedule schedule;
  bool pre_norm;
  DType dtype;
};

class DecodeStepTest : public ::testing::TestWithParam<Setting> {
 protected:
  DecodeStepTest()
      : weights_(Shape(GetParam().schedule, GetParam().pre_norm, GetParam().dtype)),
        definition_(weights_) {}

  void ExpectNear(const std::vector<float>& got, std::span<const int32_t> ids) {
    const Row want = definition_.Logits(ids);
    const double bound = GetParam().dtype == DType::kFloat32    ? 2e-4
                         : GetParam().dtype == DType::kBFloat16 ? 0.25
                                                                : 0.04;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], bound) << "logit " << i << " after " << ids.size() << " tokens";
    }
  }

  Weights weights_;
  Definition definition_;
};

TEST_P(DecodeStepTest, LogitsAreTheModelsByDefinition) {
  const std::vector<int32_t> text = Text(150, 1), young = Text(60, 2);
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    DeviceModel model(*device, weights_);
    CacheSequence first = model.Open({}), second = model.Open({});
    for (int t = 0; t < 150; ++t) {
      const bool both = t >= 70 && t < 130;
      std::vector<CacheSequence*> sequences = {&first};
      std::vector<int32_t> ids = {text[t]};
      if (both) {
        sequences.insert(sequences.begin(), &second);
        ids.insert(ids.begin(), young[t - 70]);
      }
      const auto logits = model.Step(sequences, ids);
      // Around ends of segments, windows and blocks, and at the end.
      if (t % 8 > 1 && t != 149 && t % 16 != 5) continue;
      ExpectNear(logits.back(), std::span(text).first(t + 1));
      if (both) ExpectNear(logits.front(), std::span(young).first(t - 69));
      if (HasFatalFailure()) return;
    }
    // 150 steps of one and two sequences.
    EXPECT_LE(model.recorded(), 40u);
  }
}

// 67 tokens: inside a segment and a block. A beginning of 64 is found.
TEST_P(DecodeStepTest, ForksAndFoundBeginningsReadOnLikeTheirText) {
  const std::vector<int32_t> text = Text(100, 3), other = Text(33, 4);
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    DeviceModel model(*device, weights_);
    CacheSequence whole = model.Open({});
    std::vector<std::vector<float>> alone;
    for (const int32_t id : text) alone.push_back(model.Step({&whole}, {id})[0]);
    whole.Publish();
    CacheSequence found = model.Open(text);
    ASSERT_EQ(found.tokens(), 64);
    CacheSequence fork = model.Open({});
    for (int t = 64; t < 67; ++t) EXPECT_EQ(model.Step({&found}, {text[t]})[0], alone[t]);
    fork = found.Fork();
    std::vector<int32_t> read(text.begin(), text.begin() + 67);
    for (int t = 67; t < 100; ++t) {
      const auto logits = model.Step({&fork, &found}, {other[t - 67], text[t]});
      read.push_back(other[t - 67]);
      ASSERT_EQ(logits[1], alone[t]) << t;
      if (t % 8 == 0 || t == 99) ExpectNear(logits[0], read);
    }
  }
}

// What is reserved at load is enough for every step within the limits.
TEST(DecodeRoomTest, NoStepNeedsMoreThanTheMost) {
  DecodeShape shape = Shape(Schedule::kPaper, true, DType::kFloat32);
  const SchedulePattern paper = {2, 20, 8, 3};
  for (const SchedulePattern& blocks : {paper,
                                        SchedulePattern{2, 20, 8, 3, 24, 1000, true},
                                        {2, 20, 1, 2, 600, 700, true},
                                        {2, 20, 8, 3, 1200, 2400, false}}) {
    shape.attention = blocks;
    for (const int window : {8, 20, 64, 700}) {
      shape.attention.window = window;
      const DecodeRoom most = MostRoom(shape, 3, 3000);
      for (int32_t position = 0; position < 3000; position += 1 + position / 97) {
        const std::vector<int32_t> positions = {position, 2999, 2999 - position};
        const DecodeRoom room = PlanDecode(shape, positions).room;
        ASSERT_TRUE(Fits(room.capacity, most.capacity)) << window << " " << position;
        ASSERT_LE(room.rows, most.rows);
        ASSERT_LE(room.pages, most.pages);
        ASSERT_LE(room.closing, most.closing);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DecodeStepTest,
    ::testing::Values(Setting{Schedule::kPaper, true, DType::kFloat32},
                      Setting{Schedule::kPaper, false, DType::kFloat32},
                      Setting{Schedule::kPaper, true, DType::kBFloat16},
                      Setting{Schedule::kPaper, true, DType::kFloat16},
                      Setting{Schedule::kBlocks, true, DType::kFloat32},
                      Setting{Schedule::kBlocksZeroMemory, true, DType::kFloat32},
                      Setting{Schedule::kBlocksZeroMemory, false, DType::kFloat32},
                      Setting{Schedule::kBlocksZeroMemory, true, DType::kBFloat16}));

}  // namespace
}  // namespace longview::kernels::cuda
