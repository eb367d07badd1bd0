#include "models/detection/pyramid.h"

#include <algorithm>
#include <cstring>

#include "models/detection/head.h"

namespace longview::models {
namespace {

int Half(int n) { return (n + 1) / 2; }

}  // namespace

PyramidLayout LayOutPyramid(const DetectorConfig& config, ImageSize padded) {
  PyramidLayout layout;
  layout.fused = config.strides.size();
  for (size_t level = 0; level < config.levels(); ++level) {
    MapRows map;
    if (level < layout.fused) {
      map.height = padded.height / config.stride(level);
      map.width = padded.width / config.stride(level);
    } else {
      map.height = Half(layout.levels.back().height);
      map.width = Half(layout.levels.back().width);
    }
    map.row0 = layout.rows;
    layout.rows += map.rows();
    layout.levels.push_back(map);
  }
  return layout;
}

EncoderWork PyramidWork(const DetectorConfig& config, const PyramidWeights& weights,
                        const PyramidLayout& layout) {
  EncoderWork work;
  for (size_t level = 0; level < layout.levels.size(); ++level) {
    const int64_t rows = layout.levels[level].rows();
    if (level < layout.fused) {
      work += LinearWork(weights.lateral[level], rows);
      work += LinearWork(weights.output[level].layer, rows);
    } else if (config.kind == DetectorConfig::Kind::kRetinaNet) {
      work += LinearWork(weights.further[level - layout.fused].layer, rows);
    }
  }
  return work;
}

int64_t PyramidPanelWidth(const PyramidWeights& weights) {
  int64_t widest = 0;
  for (const DenseLayer& layer : weights.lateral) widest = std::max(widest, layer.in());
  for (const auto* convolutions : {&weights.output, &weights.further}) {
    for (const Convolution& conv : *convolutions) widest = std::max(widest, conv.layer.in());
  }
  return widest;
}

bool PyramidRun::Advance() {
  const size_t fused = layout_.fused, step = step_++;
  if (step < fused) {
    Fuse(fused - 1 - step);
  } else if (step < 2 * fused) {
    Output(step - fused);
  } else if (config_.kind == DetectorConfig::Kind::kRetinaNet) {
    Further();
  } else {
    Subsample();
  }
  return step < 2 * fused;
}

// Reads columns of the channel-major map while panels are filled.
void PyramidRun::Fuse(size_t level) {
  const FeatureMap& map = maps_[level];
  const MapRows& rows = layout_.levels[level];
  const DenseLayer& lateral = weights_.lateral[level];
  const Compute compute = lateral.linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  const int64_t width = config_.width, bytes = width * ElementBytes(compute);
  const bool top = level + 1 == layout_.fused;
  const int64_t places = rows.rows();
  const std::vector<float> zeros(width);
  const auto gather = [&](int64_t row, std::byte* to) {
    // A place's channels lie `places` apart in the map: 64 are gathered and narrowed at a time.
    float part[64];
    for (int64_t c = 0; c < map.channels; c += 64) {
      const int64_t count = std::min<int64_t>(64, map.channels - c);
      for (int64_t i = 0; i < count; ++i) part[i] = map.values[(c + i) * places + row];
      kernels.narrow(part, count, to + c * ElementBytes(compute));
    }
  };
  const auto use = [&](int64_t first, int64_t count, int, std::byte* y) {
    const Stopwatch watch(context_.times ? &context_.times->rest : nullptr);
    ParallelRanges(*context_.pool, count, 4, [&](long begin, long end) {
      std::vector<float> sum(width);
      for (long i = begin; i < end; ++i) {
        const int64_t row = first + i;
        kernels.bias_widen(y + i * bytes, lateral.bias.data(), width, sum.data());
        if (!top) {
          const MapRows& above = layout_.levels[level + 1];
          // Nearest-neighbour upsampling: the place above, at half the coordinates.
          const int64_t place =
              above.row0 + row / rows.width / 2 * above.width + row % rows.width / 2;
          kernels.residual_add(sum.data(), buffers_.fused + place * bytes, zeros.data(), width,
                               nullptr);
          if (config_.average) {
            for (float& value : sum) value *= 0.5f;
          }
        }
        kernels.narrow(sum.data(), width, buffers_.fused + (rows.row0 + row) * bytes);
      }
    });
  };
  ForEachGatheredPanel(lateral, lateral.linear.sizes(), places, context_, gather, use);
}

void PyramidRun::Output(size_t level) {
  const Convolution& conv = weights_.output[level];
  const Compute compute = conv.layer.linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  const int64_t bytes = config_.width * ElementBytes(compute);
  const std::vector<MapRows> map = {layout_.levels[level]};
  Convolve(conv, buffers_.fused, map, map, context_, [&](int64_t row, const std::byte* y) {
    kernels.bias_copy(y, conv.layer.bias.data(), config_.width, buffers_.levels + row * bytes);
  });
}

// P6 from the backbone's coarsest map, P7 from P6 behind a ReLU that P6 itself does not get.
void PyramidRun::Further() {
  const FeatureMap& map = maps_.back();
  const Compute compute = weights_.further[0].layer.linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  const int64_t element = ElementBytes(compute), bytes = config_.width * element;
  const MapRows top = {map.size.height, map.size.width, 0};
  context_.Each(top.rows(), [&](long row) {
    std::vector<float> column(map.channels);
    for (int c = 0; c < map.channels; ++c) column[c] = map.values[c * top.rows() + row];
    kernels.narrow(column.data(), map.channels, buffers_.top + row * map.channels * element);
  });
  const MapRows& p6 = layout_.levels[layout_.fused];
  const MapRows& p7 = layout_.levels[layout_.fused + 1];
  const auto run = [&](const Convolution& conv, const std::byte* input, const MapRows& from,
                       const MapRows& to) {
    Convolve(conv, input, {from}, {to}, context_, [&](int64_t row, const std::byte* y) {
      kernels.bias_copy(y, conv.layer.bias.data(), config_.width, buffers_.levels + row * bytes);
    });
  };
  run(weights_.further[0], buffers_.top, top, p6);
  // m is not needed any more: its rows hold ReLU(P6).
  const std::vector<float> zeros(config_.width);
  context_.Each(p6.rows(), [&](long row) {
    std::byte* to = buffers_.fused + row * bytes;
    std::memcpy(to, buffers_.levels + (p6.row0 + row) * bytes, bytes);
    kernels.bias_act(to, zeros.data(), config_.width, Activation::kRelu);
  });
  run(weights_.further[1], buffers_.fused, {p6.height, p6.width, 0}, p7);
}

void PyramidRun::Subsample() {
  const MapRows& from = layout_.levels[layout_.fused - 1];
  const MapRows& to = layout_.levels[layout_.fused];
  const int64_t bytes = config_.width * ElementBytes(weights_.lateral[0].linear.compute());
  for (int y = 0; y < to.height; ++y) {
    for (int x = 0; x < to.width; ++x) {
      const int64_t source = from.row0 + int64_t{2} * y * from.width + 2 * x;
      const int64_t target = to.row0 + int64_t{y} * to.width + x;
      std::memcpy(buffers_.levels + target * bytes, buffers_.levels + source * bytes, bytes);
    }
  }
}

}  // namespace longview::models
