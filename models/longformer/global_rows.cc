#include "models/longformer/global_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/pool/segment_pool.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

class GlobalAttention {
 public:
  GlobalAttention(const EncoderContext& context, const LongformerLayer& layer,
                  const LayerPlan& plan, std::span<const uint8_t> roles,
                  const EncoderBuffers& buffers)
      : context_(context),
        layer_(layer),
        plan_(plan),
        roles_(roles),
        buffers_(buffers),
        rows_(ChooseRowKernels(context.compute)),
        vectors_(ChooseVectorKernels()),
        width_(context.config->width),
        heads_(context.config->heads),
        dim_(context.config->head_dim()),
        row_bytes_(width_ * ElementBytes(context.compute)) {}

  void Folded() {
    if (plan_.folded.empty()) return;
    ProjectQueries(plan_.folded, buffers_.global_rows);
    for (const GlobalGroup& group : plan_.folded_groups) {
      FoldKeys(group);
      Score(group);
      Pool(group);
      ProjectValues(group);
    }
  }

  void Unfolded() {
    if (plan_.unfolded.empty()) return;
    ProjectQueries(plan_.unfolded, nullptr);
    ProjectKeys();
    std::vector<kernels::Source> sources;
    const kernels::Call call = GlobalCall(context_, buffers_, sources);
    RunSpans(context_, plan_.full, call, buffers_.workspace);
    for (size_t i = 0; i < plan_.unfolded.size(); ++i) {
      std::memcpy(buffers_.z + plan_.unfolded[i].out * row_bytes_,
                  buffers_.global_out + static_cast<int64_t>(i) * row_bytes_,
                  static_cast<size_t>(row_bytes_));
    }
  }

  void ProjectKeys() {
    const DenseLayer& keys = layer_.key_value_global;
    for (const GlobalGroup& group : plan_.unfolded_groups) {
      std::byte* out = buffers_.global_keys + group.key_row0 * 2 * row_bytes_;
      ForEachPanel(keys.linear, buffers_.input + group.row0 * row_bytes_, group.tokens,
                   [&](int64_t first, int64_t count, void* y) {
                     ParallelRanges(*context_.pool, count, 8, [&](long begin, long end) {
                       for (long i = begin; i < end; ++i) {
                         rows_.bias_copy(static_cast<std::byte*>(y) + i * 2 * row_bytes_,
                                         keys.bias.data(), 2 * width_,
                                         out + (first + i) * 2 * row_bytes_);
                       }
                     });
                   });
    }
  }

 private:
  // query_global of the given rows: fp32 into `floats`, or the compute type into global_queries
  // if it is null.
  void ProjectQueries(std::span<const GlobalRow> globals, float* floats) {
    // The output takes the place of the gathered input, panel by panel, after it was read.
    std::byte* gathered = buffers_.global_queries;
    for (size_t i = 0; i < globals.size(); ++i) {
      std::memcpy(gathered + static_cast<int64_t>(i) * row_bytes_,
                  buffers_.input + globals[i].row * row_bytes_, static_cast<size_t>(row_bytes_));
    }
    const DenseLayer& query = layer_.query_global;
    ForEachPanel(
        query.linear, gathered, static_cast<int64_t>(globals.size()),
        [&](int64_t first, int64_t count, void* y) {
          for (int64_t i = 0; i < count; ++i) {
            const std::byte* row = static_cast<std::byte*>(y) + i * row_bytes_;
            if (floats != nullptr) {
              rows_.bias_widen(row, query.bias.data(), width_, floats + (first + i) * width_);
            } else {
              rows_.bias_copy(row, query.bias.data(), width_, gathered + (first + i) * row_bytes_);
            }
          }
        });
  }

  // fold_vectors[i * A + a] = scale * sum over d of q[i, a, d] * Wk[a, d, :].
  void FoldKeys(const GlobalGroup& group) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim_));
    ParallelRanges(*context_.pool, int64_t{group.count} * heads_, 1, [&](long begin, long end) {
      for (long c = begin; c < end; ++c) {
        const int64_t head = c % heads_;
        const float* q = buffers_.global_rows + (group.first + c / heads_) * width_ + head * dim_;
        const float* keys = layer_.key_global.data() + head * dim_ * width_;
        float* u = buffers_.fold_vectors + c * width_;
        std::fill_n(u, width_, 0.0f);
        for (int64_t d = 0; d < dim_; ++d) {
          vectors_.add_scaled(u, keys + d * width_, q[d] * scale, width_);
        }
      }
    });
  }

  void Score(const GlobalGroup& group) {
    const int64_t columns = int64_t{group.count} * heads_;
    ParallelRanges(*context_.pool, group.tokens, 16, [&](long begin, long end) {
      for (long t = begin; t < end; ++t) {
        vectors_.dots(buffers_.x + (group.row0 + t) * width_, buffers_.fold_vectors, columns,
                      width_, buffers_.fold_scores + t * columns);
      }
    });
  }

  void Pool(const GlobalGroup& group) {
    kernels::PoolValue value;
    value.data = buffers_.x + group.row0 * width_;
    value.row_stride = width_;
    value.width = static_cast<int>(width_);
    value.out = buffers_.fold_means;
    const std::array<int32_t, 2> offsets = {0, group.tokens};
    kernels::PoolCall call;
    call.scores = buffers_.fold_scores;
    call.columns = call.columns_per_head = group.count * static_cast<int>(heads_);
    call.score_stride = call.columns;
    call.visible = roles_.data() + group.row0;
    call.offsets = offsets;
    call.values = {&value, 1};
    const kernels::WorkspaceBytes bytes = MeasurePool(call);
    PoolSegments(call, kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool);
  }

  // z[out, a, d] = Wv[a, d, :] . mean[a] + bv[a, d]
  void ProjectValues(const GlobalGroup& group) {
    const float* bias = layer_.key_value_global.bias.data() + width_;
    const int64_t columns = int64_t{group.count} * heads_;
    ParallelRanges(*context_.pool, columns, 1, [&](long begin, long end) {
      std::array<float, kernels::kMaxHeadDim> values;
      for (long c = begin; c < end; ++c) {
        const int64_t head = c % heads_;
        const float* matrix = layer_.value_global.data() + head * dim_ * width_;
        const float* mean = buffers_.fold_means + c * width_;
        vectors_.dots(mean, matrix, dim_, width_, values.data());
        vectors_.add_scaled(values.data(), bias + head * dim_, 1.0f, dim_);
        const GlobalRow& global = plan_.folded[group.first + c / heads_];
        rows_.narrow(
            values.data(), dim_,
            buffers_.z + global.out * row_bytes_ + head * dim_ * ElementBytes(context_.compute));
      }
    });
  }

  const EncoderContext& context_;
  const LongformerLayer& layer_;
  const LayerPlan& plan_;
  const std::span<const uint8_t> roles_;
  const EncoderBuffers& buffers_;
  const RowKernels& rows_;
  const VectorKernels& vectors_;
  const int64_t width_, heads_, dim_, row_bytes_;
};

}  // namespace

void ProjectGlobalKeys(const EncoderContext& context, const LongformerLayer& layer,
                       const LayerPlan& plan, const EncoderBuffers& buffers) {
  GlobalAttention(context, layer, plan, {}, buffers).ProjectKeys();
}

void AttendGlobal(const EncoderContext& context, const LongformerLayer& layer,
                  const LayerPlan& plan, std::span<const uint8_t> roles,
                  const EncoderBuffers& buffers) {
  GlobalAttention attention(context, layer, plan, roles, buffers);
  attention.Folded();
  attention.Unfolded();
}

}  // namespace longview::models
