#include "models/transformer_ls/pages.h"

#include <algorithm>
#include <cstring>

#include "models/parallel.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::models {
namespace {

using kernels::PoolState;

class PageWriter {
 public:
  PageWriter(const LsContext& context, int layer, const LsPassLayout& layout,
             const LsBuffers& buffers, const kernels::CacheStep& step, PageLists& lists)
      : context_(context),
        config_(*context.config),
        layer_(layer),
        layout_(layout),
        buffers_(buffers),
        step_(step),
        lists_(lists),
        early_(config_.schedule == LsSchedule::kBlocks) {}

  void Run() {
    Load();
    Append();
    Close();
    if (layout_.closed_segments() > 0) {
      Write(kLateStrip, buffers_.page_keys, buffers_.page_values);
      if (early_) {
        ProjectHidden();
        Write(kEarlyStrip, buffers_.early_keys, buffers_.early_values);
      }
    }
    Store();
  }

 private:
  size_t count() const { return layout_.pieces.size(); }

  PoolState Piece(size_t i) const {
    return kernels::CarvePoolState(buffers_.states + i * PieceStateBytes(config_),
                                   PoolColumns(config_), PoolWidths(config_));
  }

  PoolState Cached(const LsPiece& piece) const {
    return context_.cache->State(layout_.runs[piece.run].sequence->cache(), layer_);
  }

  void Copy(const PoolState& from, const PoolState& to) const {
    const auto columns = static_cast<size_t>(PoolColumns(config_));
    const auto sums = columns * static_cast<size_t>(config_.head_dim());
    std::copy_n(from.m, columns, to.m);
    std::copy_n(from.s, columns, to.s);
    for (int i = 0; i < 2; ++i) std::copy_n(from.sums[i], sums, to.sums[i]);
  }

  void Load() {
    for (size_t i = 0; i < count(); ++i) {
      const LsPiece& piece = layout_.pieces[i];
      if (piece.resumes) {
        Copy(Cached(piece), Piece(i));
      } else {
        ResetPoolState(Piece(i), PoolColumns(config_), PoolWidths(config_));
      }
    }
  }

  void Append() {
    const int64_t width = config_.width, element = ElementBytes(context_.compute);
    const auto value = [&](const void* data, kernels::DType dtype, int64_t row_stride) {
      kernels::PoolValue value;
      value.data = data;
      value.dtype = dtype;
      value.row_stride = row_stride;
      value.head_stride = value.width = config_.head_dim();
      return value;
    };
    const kernels::PoolValue projected[] = {
        value(buffers_.qkv + width * element, SpanType(context_.compute), 3 * width),
        value(buffers_.qkv + 2 * width * element, SpanType(context_.compute), 3 * width)};
    const kernels::PoolValue hidden[] = {value(buffers_.x, kernels::DType::kFloat32, width)};
    kernels::PoolCall call;
    call.scores = buffers_.scores;
    call.score_stride = call.columns = config_.columns();
    call.columns_per_head = config_.rank;
    call.offsets = layout_.piece_rows;
    call.values = projected;
    std::vector<PoolState>& states = lists_.states;
    states.clear();
    for (size_t i = 0; i < count(); ++i) states.push_back(KeyValueSums(Piece(i)));
    PoolAppend(call, states, PoolOf(context_, layout_.rows));
    if (!early_) return;
    for (PoolState& state : states) state = HiddenSums(config_, state);
    call.values = hidden;
    PoolAppend(call, states, PoolOf(context_, layout_.rows));
  }

  // Rank k of all heads side by side: means are [h, r, dh].
  void JoinHeads(const float* means, int rank, float* row) const {
    const int dim = config_.head_dim();
    for (int head = 0; head < config_.heads; ++head) {
      std::copy_n(means + (int64_t{head} * config_.rank + rank) * dim, dim, row + head * dim);
    }
  }

  void NormPage(float* row) const {
    const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
    floats.bias_norm(row, buffers_.zeros, context_.weights->layers[layer_].segment_norm.view(),
                     config_.width, row);
  }

  void CloseOne(size_t piece, int64_t segment, float* means) const {
    const int64_t width = config_.width, rank = config_.rank;
    const auto widths = PoolWidths(config_);
    const PoolState state = Piece(piece);
    float* const out[] = {means, means + width * rank};
    PoolMeans(KeyValueSums(state), config_.columns(), widths, out);
    for (int k = 0; k < rank; ++k) {
      float* key = buffers_.page_keys + (segment * rank + k) * width;
      float* value = buffers_.page_values + (segment * rank + k) * width;
      JoinHeads(out[0], k, key);
      JoinHeads(out[1], k, value);
      NormPage(key);
      NormPage(value);
    }
    if (!early_) return;
    const RowKernels& rows = ChooseRowKernels(context_.compute);
    PoolMeans(HiddenSums(config_, state), config_.columns(), std::span(widths).first(1),
              std::span(out).first(1));
    for (int k = 0; k < rank; ++k) {
      JoinHeads(out[0], k, out[1]);
      rows.narrow(out[1], width,
                  buffers_.hidden + (segment * rank + k) * width * ElementBytes(context_.compute));
    }
  }

  void Close() {
    lists_.closing.clear();
    for (size_t i = 0; i < count(); ++i) {
      if (layout_.pieces[i].closes) lists_.closing.push_back(i);
    }
    const auto total = static_cast<int64_t>(lists_.closing.size());
    if (total == 0) return;
    const int64_t means = 2 * int64_t{config_.width} * config_.rank;
    const auto work = [&](int64_t begin, int64_t end, int thread) {
      for (int64_t s = begin; s < end; ++s) {
        CloseOne(lists_.closing[s], s, buffers_.means + thread * means);
      }
    };
    const int threads = context_.pool->threads();
    if (total < 2 * threads) return work(0, total, 0);
    kernels::RunOnThreads(*context_.pool, [&](int thread) {
      work(total * thread / threads, total * (thread + 1) / threads, thread);
    });
  }

  // Early form: the same projection as a token's, of averaged hidden states.
  void ProjectHidden() {
    const LsLmLayer& layer = context_.weights->layers[layer_];
    const RowKernels& rows = ChooseRowKernels(context_.compute);
    const int64_t width = config_.width, element = ElementBytes(context_.compute);
    const int64_t total = layout_.closed_segments() * config_.rank;
    std::memset(buffers_.hidden + total * width * element, 0,
                static_cast<size_t>(kPanelRows * width * element));
    ForEachPanel(
        layer.project.linear, buffers_.hidden, total, [&](int64_t row, int64_t used, void* y) {
          for (int64_t i = 0; i < used; ++i) {
            const auto* key =
                static_cast<const std::byte*>(y) + (i * layer.project.out() + width) * element;
            const float* bias = layer.project.bias.data() + width;
            float* early_key = buffers_.early_keys + (row + i) * width;
            float* early_value = buffers_.early_values + (row + i) * width;
            rows.bias_widen(key, bias, width, early_key);
            rows.bias_widen(key + width * element, bias + width, width, early_value);
            NormPage(early_key);
            NormPage(early_value);
          }
        });
  }

  void Write(int strip, const float* keys, const float* values) const {
    int64_t first = 0;
    for (size_t g = 0; g < layout_.groups.size(); ++g) {
      const int64_t segments = layout_.closed[g];
      if (segments > 0) {
        kernels::ProjectionCache::Rows rows;
        rows.k = keys + first * config_.rank * config_.width;
        rows.v = values + first * config_.rank * config_.width;
        rows.k_row_stride = rows.v_row_stride = config_.width;
        rows.k_head_stride = rows.v_head_stride = config_.head_dim();
        context_.cache->Write(strip, layer_, step_.places(layout_.groups[g].group, strip), rows,
                              *context_.pool);
      }
      first += segments;
    }
  }

  void Store() const {
    for (size_t i = 0; i < count(); ++i) {
      const LsPiece& piece = layout_.pieces[i];
      if (!piece.last) continue;
      if (piece.closes) {
        ResetPoolState(Cached(piece), PoolColumns(config_), PoolWidths(config_));
      } else {
        Copy(Piece(i), Cached(piece));
      }
    }
  }

  const LsContext& context_;
  const LsLmConfig& config_;
  const int layer_;
  const LsPassLayout& layout_;
  const LsBuffers& buffers_;
  const kernels::CacheStep& step_;
  PageLists& lists_;
  const bool early_;
};

}  // namespace

void WritePages(const LsContext& context, int layer, const LsPassLayout& layout,
                const LsBuffers& buffers, const kernels::CacheStep& step, PageLists& lists) {
  PageWriter(context, layer, layout, buffers, step, lists).Run();
}

}  // namespace longview::models
