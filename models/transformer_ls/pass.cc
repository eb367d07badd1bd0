#include "models/transformer_ls/pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "models/checkpoint/convert.h"
#include "models/layers/stopwatch.h"
#include "models/parallel.h"
#include "models/transformer_ls/cache_layout.h"
#include "models/transformer_ls/pages.h"
#include "models/transformer_ls/position_scores.h"

namespace longview::models {
namespace {

using kernels::CacheStep;

constexpr int64_t kRowGrain = 2;

size_t CarvedBytes(const LsContext& context, const LsPassLayout& layout, size_t workspace) {
  Carver measure(nullptr);
  CarveLsBuffers(context, layout, workspace, measure);
  return measure.used();
}

}  // namespace

LsPass::LsPass(const LsContext& context, ScratchKeeper& scratch, std::vector<TokenRun> runs,
               EncoderTimes* times)
    : context_(context),
      config_(*context.config),
      kernels_(ChooseRowKernels(context.compute)),
      width_(config_.width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      times_(times),
      layout_(LayOut(context, std::move(runs))),
      step_(context.cache),
      zero_offsets_(layout_.runs.size(), 0),
      scratch_(scratch, ScratchBytes(context, layout_)) {
  Carver carver(scratch_.data());
  buffers_ = CarveLsBuffers(context_, layout_, AttentionWorkspace(context_, layout_), carver);
  std::fill_n(buffers_.zeros, width_, 0.0f);
  ClearTail(buffers_.input, context_.weights->sizes, layout_.rows);
  ClearTail(buffers_.z, context_.weights->sizes, layout_.rows);
  ClearTail(buffers_.logit_input, context_.weights->logits->linear.sizes(), layout_.wanted);
}

// Rows past the end are read by last panels: their values never matter, but they must not be
// numbers that slow arithmetic down.
void LsPass::ClearTail(std::byte* buffer, PanelSizes sizes, int64_t rows) const {
  int64_t end = 0;
  while (end < rows) end += NextPanel(sizes, rows - end);
  if (end > rows) {
    std::memset(buffer + rows * row_bytes_, 0, static_cast<size_t>((end - rows) * row_bytes_));
  }
}

LsPassLayout LsPass::LayOut(const LsContext& context, std::vector<TokenRun> runs) {
  return LayOutPass(*context.config, std::move(runs), context.tile_rows());
}

size_t LsPass::ScratchBytes(const LsContext& context, const LsPassLayout& layout) {
  return CarvedBytes(context, layout, AttentionWorkspace(context, layout));
}

absl::Status LsPass::Begin() {
  context_.tables->Cover(layout_.most_segment_ids);
  if (absl::Status status = AppendRuns(layout_.runs, step_); !status.ok()) return status;
  FollowTables();
  return absl::OkStatus();
}

void LsPass::FollowTables() {
  const size_t strips = context_.cache->shape().strips.size();
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    absolute_[g].resize(strips);
    for (size_t strip = 0; strip < strips; ++strip) {
      const kernels::CacheTable& table =
          step_.table(layout_.groups[g].group, static_cast<int>(strip));
      std::vector<int32_t>& offsets = absolute_[g][strip];
      offsets.clear();
      for (size_t s = 0; s < table.first_block.size(); ++s) {
        offsets.push_back(table.offsets[s] - table.first_block[s]);
      }
    }
  }
}

// H = sqrt(d) * embedding; nothing is added for positions.
void LsPass::Embed() {
  const float scale = std::sqrt(static_cast<float>(width_));
  for (const TokenRun& run : layout_.runs) {
    ParallelRanges(*context_.pool, static_cast<long>(run.ids.size()), 32,
                   [&](long begin, long end) {
                     for (long i = begin; i < end; ++i) {
                       float* x = buffers_.x + (run.row0 + i) * width_;
                       CopyFloat32(*context_.weights->words, run.ids[i] * width_,
                                   {x, static_cast<size_t>(width_)});
                       for (int64_t d = 0; d < width_; ++d) x[d] *= scale;
                     }
                   });
  }
}

void LsPass::Enter() {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  Embed();
  ParallelRanges(*context_.pool, layout_.rows, kRowGrain, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      float* x = buffers_.x + row * width_;
      std::byte* input = buffers_.input + row * row_bytes_;
      if (config_.pre_norm) {
        kernels_.residual_norm(x, nullptr, buffers_.zeros, context_.weights->layers[0].norm1.view(),
                               width_, input);
      } else if (context_.compute != Compute::kFp32) {
        kernels_.narrow(x, width_, input);
      }
    }
  });
}

void LsPass::ProjectRow(const LsLmLayer& layer, const std::byte* y, int64_t row) {
  const float* bias = layer.project.bias.data();
  const NormWeights norm = layer.window_norm.view();
  kernels_.bias_copy(y, bias, 3 * width_, buffers_.qkv + row * 3 * row_bytes_);
  kernels_.bias_norm(y + row_bytes_, bias + width_, norm, width_, buffers_.keys + row * row_bytes_);
  kernels_.bias_norm(y + 2 * row_bytes_, bias + 2 * width_, norm, width_,
                     buffers_.values + row * row_bytes_);
  kernels_.bias_widen(y + 3 * row_bytes_, bias + 3 * width_, config_.columns(),
                      buffers_.scores + row * config_.columns());
}

LsPass::Rows LsPass::NextRows(int64_t row) const {
  const LsGroup& decode = layout_.groups[2];
  const bool few = decode.runs > 0 && context_.weights->few_rows();
  if (few && row >= decode.row0) {
    return {std::min(RowLinear::kRows, layout_.rows - row), 0};
  }
  const int64_t left = (few ? decode.row0 : layout_.rows) - row;
  const int panel = NextPanel(context_.weights->sizes, left);
  return {std::min<int64_t>(panel, left), panel};
}

PanelOutput LsPass::Multiply(const DenseLayer& dense, const void* x, const Rows& rows,
                             std::byte* products) const {
  const Stopwatch watch(times_ ? &times_->linears : nullptr);
  if (rows.panel > 0) return dense.linear.Panel(x, rows.panel);
  const auto* input = static_cast<const std::byte*>(x);
  return {nullptr, dense.rows->linear.Multiply(input, rows.count, products, *context_.pool)};
}

void LsPass::Project(const LsLmLayer& layer) {
  const int64_t out_bytes = layer.project.out() * ElementBytes(context_.compute);
  for (int64_t row = 0; row < layout_.rows;) {
    const Rows rows = NextRows(row);
    const PanelOutput y =
        Multiply(layer.project, buffers_.input + row * row_bytes_, rows, buffers_.products[0]);
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    ParallelRanges(*context_.pool, rows.count, kRowGrain, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        ProjectRow(layer, static_cast<const std::byte*>(y.data()) + i * out_bytes, row + i);
      }
    });
    row += rows.count;
  }
}

void LsPass::Attend(int index) {
  const LsGroup& group = layout_.groups[index];
  if (group.runs == 0) return;
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  if (group.group == CacheStep::kDecode) ScorePositions(context_, layer_, layout_, buffers_);
  MakeCall(context_, layer_, layout_, group, buffers_, &step_, absolute_[index], zero_offsets_,
           call_);
  RunSpans(context_, group.plan, call_.call, buffers_.workspace);
}

void LsPass::WriteWindow(int index) {
  const LsGroup& group = layout_.groups[index];
  if (group.runs == 0) return;
  kernels::ProjectionCache::Rows rows;
  rows.k = buffers_.keys + group.row0 * row_bytes_;
  rows.v = buffers_.values + group.row0 * row_bytes_;
  rows.dtype = SpanType(context_.compute);
  rows.k_row_stride = rows.v_row_stride = width_;
  rows.k_head_stride = rows.v_head_stride = config_.head_dim();
  context_.cache->Write(kWindowStrip, layer_, step_.places(group.group, kWindowStrip), rows,
                        PoolOf(context_, group.rows));
}

// y = x + Wo z, normed; x = y + W2 act(W1 y), normed: panel by panel while it is in cache.
void LsPass::Finish(const LsLmLayer& layer, int64_t first) {
  const bool last = layer_ + 1 == config_.layers;
  const int64_t expanded_bytes = layer.expand.out() * ElementBytes(context_.compute);
  // pre_ln keeps the stream normalised: what follows the FFN is the next layer's norm1.
  const Norm* after_attention = config_.pre_norm ? &layer.norm2 : &layer.norm1;
  const Norm* after_ffn = !config_.pre_norm ? &layer.norm2
                          : last            ? nullptr
                                            : &context_.weights->layers[layer_ + 1].norm1;
  const auto add = [&](int64_t row, int64_t used, const PanelOutput& y, const DenseLayer& dense,
                       const Norm* norm) {
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    ParallelRanges(*context_.pool, used, kRowGrain, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        float* x = buffers_.x + (row + i) * width_;
        const auto* from = static_cast<const std::byte*>(y.data()) + i * row_bytes_;
        std::byte* copy = buffers_.input + (row + i) * row_bytes_;
        if (norm != nullptr) {
          kernels_.residual_norm(x, from, dense.bias.data(), norm->view(), width_, copy);
        } else {
          kernels_.residual_add(x, from, dense.bias.data(), width_, copy);
        }
      }
    });
  };
  for (int64_t row = first; row < layout_.rows;) {
    const Rows rows = NextRows(row);
    const auto& products = buffers_.products;
    add(row, rows.count, Multiply(layer.out, buffers_.z + row * row_bytes_, rows, products[0]),
        layer.out, after_attention);
    const PanelOutput expanded =
        Multiply(layer.expand, buffers_.input + row * row_bytes_, rows, products[1]);
    {
      const Stopwatch watch(times_ ? &times_->rest : nullptr);
      ParallelRanges(*context_.pool, rows.count, kRowGrain, [&](long begin, long end) {
        for (long i = begin; i < end; ++i) {
          kernels_.bias_act(static_cast<std::byte*>(expanded.data()) + i * expanded_bytes,
                            layer.expand.bias.data(), layer.expand.out(), config_.activation);
        }
      });
    }
    add(row, rows.count, Multiply(layer.contract, expanded.data(), rows, products[0]),
        layer.contract, after_ffn);
    row += rows.count;
  }
}

void LsPass::Logits() {
  if (layout_.wanted == 0) return;
  const DenseLayer& logits = *context_.weights->logits;
  std::vector<float*> to;
  for (const TokenRun& run : layout_.runs) {
    const int64_t first = run.end() - run.wanted;
    for (int64_t i = 0; i < run.wanted; ++i) {
      std::memcpy(buffers_.logit_input + static_cast<int64_t>(to.size()) * row_bytes_,
                  buffers_.input + (first + i) * row_bytes_, static_cast<size_t>(row_bytes_));
      to.push_back(run.logits + i * config_.vocab);
    }
  }
  const int64_t out_bytes = logits.out() * ElementBytes(context_.compute);
  const auto store = [&](int64_t row, int64_t used, const void* y) {
    ParallelRanges(*context_.pool, used, 4, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        kernels_.bias_widen(static_cast<const std::byte*>(y) + i * out_bytes, logits.bias.data(),
                            logits.out(), to[row + i]);
      }
    });
  };
  const int64_t panels = context_.weights->few_rows()
                             ? WantedRows(std::span(layout_.runs).first(layout_.groups[2].run0))
                             : layout_.wanted;
  ForEachPanel(logits.linear, buffers_.logit_input, panels, store);
  for (int64_t row = panels; row < layout_.wanted; row += RowLinear::kRows) {
    const int64_t count = std::min(RowLinear::kRows, layout_.wanted - row);
    store(row, count,
          logits.rows->linear.Multiply(buffers_.logit_input + row * row_bytes_, count,
                                       buffers_.products[0], *context_.pool));
  }
}

bool LsPass::Advance() {
  if (layer_ == 0) Enter();
  const LsLmLayer& layer = context_.weights->layers[layer_];
  Project(layer);
  {
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    WritePages(context_, layer_, layout_, buffers_, step_, page_lists_);
  }
  const bool last = layer_ + 1 == config_.layers;
  const LsGroup& fresh = layout_.groups[0];
  // Rows whose last layer nobody reads are left out where they come first: chunks of a prompt.
  const bool skip = last && std::all_of(layout_.runs.begin(), layout_.runs.begin() + fresh.runs,
                                        [](const TokenRun& run) { return run.wanted == 0; });
  if (!skip) Attend(0);
  for (const int g : {0, 1, 2}) WriteWindow(g);
  if (!last || layout_.wanted > 0) {
    Attend(1);
    Attend(2);
    Finish(layer, skip ? fresh.rows : 0);
  }
  if (last) {
    Logits();
    step_.End();
  }
  return ++layer_ < config_.layers;
}

}  // namespace longview::models
