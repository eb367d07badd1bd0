#include "models/stack/pass.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/checkpoint/convert.h"
#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
#include "models/parallel.h"
#include "models/stack/sequence.h"

namespace longview::models {
namespace {

size_t CarvedBytes(const StackContext& context, const StackPassLayout& layout, size_t workspace) {
  Carver measure(nullptr);
  CarveStackBuffers(context, layout, workspace, measure);
  return measure.used();
}

const StackDocument* ReadBy(const TokenRun& run) {
  return static_cast<DocumentSequence*>(run.sequence)->document();
}

}  // namespace

size_t StackPass::ScratchBytes(const StackContext& context, const StackPassLayout& layout) {
  return CarvedBytes(context, layout, StackWorkspace(context, layout));
}

StackPass::StackPass(const StackContext& context, ScratchKeeper& scratch,
                     std::vector<TokenRun> runs, EncoderTimes* times)
    : context_(context),
      config_(*context.config),
      kernels_(ChooseRowKernels(context.compute)),
      width_(config_.width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      times_(times),
      layout_(LayOutStackPass(context, std::move(runs), ReadBy)),
      step_(context.cache),
      scratch_(scratch, ScratchBytes(context, layout_)) {
  Carver carver(scratch_.data());
  buffers_ = CarveStackBuffers(context_, layout_, StackWorkspace(context_, layout_), carver);
  std::fill_n(buffers_.zeros, width_, 0.0f);
  ClearTail(buffers_.input, layout_.rows);
  ClearTail(buffers_.z, layout_.rows);
  if (layout_.wanted > 0) ClearTail(buffers_.logit_input, layout_.wanted);
}

// Rows past the end are read by last panels: their values never matter, but they must not be
// numbers that slow arithmetic down.
void StackPass::ClearTail(std::byte* buffer, int64_t rows) const {
  std::memset(buffer + rows * row_bytes_, 0, static_cast<size_t>(kPanelRows * row_bytes_));
}

absl::Status StackPass::Begin() {
  if (absl::Status status = AppendRuns(layout_.runs, step_); !status.ok()) return status;
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    const kernels::CacheTable& table = step_.table(layout_.groups[g].group, 0);
    for (size_t s = 0; s < table.first_block.size(); ++s) {
      offsets_[g].push_back(table.offsets[s] - table.first_block[s]);
    }
  }
  for (const StackDocument* document : layout_.documents) {
    context_.documents->AddTable(*document->keys, 0, &document_table_);
  }
  return absl::OkStatus();
}

void StackPass::Embed() {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const StackWeights& weights = *context_.weights;
  const auto width = static_cast<size_t>(width_);
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* word = buffers_.embedding_rows + 2 * width_ * thread;
    float* position = word + width_;
    for (const TokenRun& run : layout_.runs) {
      for (auto i = static_cast<size_t>(thread); i < run.ids.size();
           i += static_cast<size_t>(threads)) {
        const int64_t at = config_.first_position + run.start + static_cast<int64_t>(i);
        const int64_t row = run.row0 + static_cast<int64_t>(i);
        CopyFloat32(*weights.words, run.ids[i] * width_, {word, width});
        CopyFloat32(*weights.positions, at * width_, {position, width});
        kernels_.sum_norm(buffers_.x + row * width_, word, position, weights.type.data(),
                          weights.embedding_norm.view(), width_, buffers_.input + row * row_bytes_);
      }
    }
  });
}

void StackPass::Run(const kernels::Plan& plan) {
  RunSpans(context_, plan, call_.call, buffers_.workspace);
}

void StackPass::Attend(int index) {
  const auto g = static_cast<size_t>(index);
  const StackGroup& group = layout_.groups[g];
  if (group.runs == 0) return;
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  MakeSelfCall(context_, layer_, group, buffers_, &step_, offsets_[g], call_);
  Run(group.plans.at(context_.tables->PatternOf(layer_)));
}

void StackPass::Write(int index) {
  const StackGroup& group = layout_.groups[static_cast<size_t>(index)];
  if (group.runs == 0) return;
  const std::byte* first = buffers_.qkv + group.row0 * 3 * row_bytes_;
  kernels::ProjectionCache::Rows rows;
  rows.k = first + row_bytes_;
  rows.v = first + 2 * row_bytes_;
  rows.dtype = SpanType(context_.compute);
  rows.k_row_stride = rows.v_row_stride = 3 * width_;
  rows.k_head_stride = rows.v_head_stride = config_.head_dim();
  context_.cache->Write(0, layer_, step_.places(group.group, 0), rows, *context_.pool);
}

template <typename Use>
void StackPass::Multiply(const DenseLayer& dense, const std::byte* input, Use&& use) {
  const int64_t panels = layout_.panel_rows, few = layout_.rows - panels;
  ForEachRow(dense, input, panels, context_.weights->sizes, *context_.pool, times_, use);
  if (few == 0) return;
  ForEachFewRow(dense, input + panels * dense.in() * ElementBytes(context_.compute), few,
                buffers_.products, *context_.pool, times_,
                [&](int64_t row, std::byte* y) { use(panels + row, y); });
}

void StackPass::AddRows(const DenseLayer& dense, const Norm& norm) {
  Multiply(dense, buffers_.z, [&](int64_t row, std::byte* y) {
    kernels_.residual_norm(buffers_.x + row * width_, y, dense.bias.data(), norm.view(), width_,
                           buffers_.input + row * row_bytes_);
  });
}

void StackPass::FinishFew(const DenseLayer& out, const Norm& norm, const StackLayer& layer) {
  const int64_t first = layout_.panel_rows, rows = layout_.rows - first;
  const int64_t inner_bytes = layer.expand.out() * ElementBytes(context_.compute);
  const auto each = [&](const DenseLayer& dense, const std::byte* input, auto&& use) {
    ForEachFewRow(dense, input, rows, buffers_.products, *context_.pool, times_, use);
  };
  const auto add = [&](const DenseLayer& dense, const Norm& after) {
    return [&](int64_t row, std::byte* y) {
      kernels_.residual_norm(buffers_.x + (first + row) * width_, y, dense.bias.data(),
                             after.view(), width_, buffers_.input + (first + row) * row_bytes_);
    };
  };
  each(out, buffers_.z + first * row_bytes_, add(out, norm));
  each(layer.expand, buffers_.input + first * row_bytes_, [&](int64_t row, std::byte* y) {
    kernels_.bias_act(y, layer.expand.bias.data(), layer.expand.out(), config_.activation);
    std::memcpy(buffers_.expanded + row * inner_bytes, y, static_cast<size_t>(inner_bytes));
  });
  each(layer.contract, buffers_.expanded, add(layer.contract, layer.output_norm));
}

void StackPass::AttendDocuments(const StackLayer::Cross& cross) {
  Multiply(cross.query, buffers_.input, [&](int64_t row, std::byte* y) {
    kernels_.bias_copy(y, cross.query.bias.data(), width_, buffers_.qkv + row * row_bytes_);
  });
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  MakeCrossCall(context_, layer_, buffers_, &document_table_, call_);
  Run(layout_.cross);
}

void StackPass::Finish(const StackLayer& layer) {
  const DenseLayer* out = &layer.out;
  const Norm* norm = &layer.attention_norm;
  if (layer.cross) {
    AddRows(*out, *norm);
    AttendDocuments(*layer.cross);
    out = &layer.cross->out;
    norm = &layer.cross->norm;
  }
  const BlockTail tail = {
      out, norm, &layer.expand, &layer.contract, &layer.output_norm, config_.activation};
  RunBlockTail(tail, {buffers_.x, buffers_.input, buffers_.z, layout_.panel_rows},
               context_.weights->sizes, *context_.pool, times_);
  if (layout_.rows > layout_.panel_rows) FinishFew(*out, *norm, layer);
}

void StackPass::Logits() {
  const StackWeights& weights = *context_.weights;
  std::vector<float*> to;
  for (const TokenRun& run : layout_.runs) {
    const int64_t first = run.end() - run.wanted;
    for (int64_t i = 0; i < run.wanted; ++i) {
      std::memcpy(buffers_.logit_input + static_cast<int64_t>(to.size()) * row_bytes_,
                  buffers_.input + (first + i) * row_bytes_, static_cast<size_t>(row_bytes_));
      to.push_back(run.logits + i * config_.vocab);
    }
  }
  const int64_t panels = layout_.panel_wanted, few = layout_.wanted - panels;
  const auto multiply = [&](const DenseLayer& dense, auto&& use) {
    ForEachRow(dense, buffers_.logit_input, panels, dense.linear.sizes(), *context_.pool, times_,
               use);
    if (few == 0) return;
    ForEachFewRow(dense, buffers_.logit_input + panels * row_bytes_, few, buffers_.products,
                  *context_.pool, times_, [&](int64_t row, std::byte* y) { use(panels + row, y); });
  };
  if (weights.head_dense) {
    multiply(*weights.head_dense, [&](int64_t row, std::byte* y) {
      kernels_.bias_act(y, weights.head_dense->bias.data(), width_, Activation::kGelu);
      kernels_.bias_norm(y, buffers_.zeros, weights.head_norm.view(), width_,
                         buffers_.logit_input + row * row_bytes_);
    });
  }
  multiply(*weights.logits, [&](int64_t row, std::byte* y) {
    kernels_.bias_widen(y, weights.logits->bias.data(), config_.vocab,
                        to[static_cast<size_t>(row)]);
  });
}

bool StackPass::Advance() {
  if (layer_ == 0) Embed();
  const StackLayer& layer = context_.weights->layers[static_cast<size_t>(layer_)];
  Multiply(layer.qkv, buffers_.input, [&](int64_t row, std::byte* y) {
    kernels_.bias_copy(y, layer.qkv.bias.data(), 3 * width_, buffers_.qkv + row * 3 * row_bytes_);
  });
  const bool last = layer_ + 1 == config_.layers();
  // Nobody reads the last layer of a prompt's earlier chunks.
  const bool skip = last && layout_.wanted == 0;
  if (!skip) Attend(0);
  for (const int g : {0, 1, 2}) Write(g);
  if (!skip) {
    Attend(1);
    Attend(2);
    Finish(layer);
  }
  if (last) {
    if (layout_.wanted > 0) Logits();
    step_.End();
  }
  return ++layer_ < config_.layers();
}

}  // namespace longview::models
