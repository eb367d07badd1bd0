#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/pool/segment_pool.h"
#include "models/layers/panels.h"
#include "models/longformer/attend_folded.h"
#include "models/ops/host_backend.h"

namespace longview::models::ops {
namespace {

// Scratch of one call; groups share it.
struct HostFoldBuffers {
  std::byte* gathered = nullptr;  // T [global rows + panel, width]
  float* queries = nullptr;       // [global rows, width]
  float* vectors = nullptr;       // [columns, width]
  float* scores = nullptr;        // [tokens, columns]
  float* means = nullptr;         // [columns, width]
  std::byte* workspace = nullptr;
};

HostFoldBuffers Carve(const AttendFolded& args, Compute compute, Carver& carver) {
  int64_t columns = 0, scores = 0;
  for (const FoldGroup& group : args.folds.groups) {
    columns = std::max(columns, int64_t{group.count} * args.heads);
    scores = std::max(scores, int64_t{group.count} * args.heads * group.tokens);
  }
  const int64_t rows = args.folds.rows.count, width = args.width();
  HostFoldBuffers buffers;
  buffers.gathered =
      carver.TakeBytes(static_cast<size_t>((rows + kPanelRows) * width * ElementBytes(compute)));
  buffers.queries = carver.Take<float>(rows * width);
  buffers.vectors = carver.Take<float>(columns * width);
  buffers.scores = carver.Take<float>(scores);
  buffers.means = carver.Take<float>(columns * width);
  buffers.workspace = carver.TakeBytes(static_cast<size_t>(scores) * sizeof(float));
  return buffers;
}

class Folding {
 public:
  Folding(const AttendFolded& args, const ComputeContext& context, const HostFoldBuffers& buffers)
      : args_(args),
        context_(context),
        buffers_(buffers),
        rows_(ChooseRowKernels(context.compute)),
        vectors_(ChooseVectorKernels()),
        width_(args.width()),
        heads_(args.heads),
        dim_(width_ / heads_) {}

  void ProjectQueries(RunTimes* times) {
    const auto bytes = static_cast<size_t>(args_.input.row_bytes());
    for (int64_t i = 0; i < args_.folds.rows.count; ++i) {
      std::memcpy(buffers_.gathered + i * args_.input.row_bytes(),
                  args_.input.Row(args_.folds.rows.data[i]), bytes);
    }
    const DenseLayer& query = *args_.query.host;
    ForEachRow(query, buffers_.gathered, args_.folds.rows.count, query.linear.sizes(),
               *context_.pool, times, [&](int64_t row, std::byte* y) {
                 rows_.bias_widen(y, query.bias.data(), width_, buffers_.queries + row * width_);
               });
  }

  void Attend(const FoldGroup& group) {
    FoldKeys(group);
    Score(group);
    Pool(group);
    ProjectValues(group);
  }

 private:
  // vectors[i * heads + a] = scale * sum over d of q[i, a, d] * Wk[a, d, :].
  void FoldKeys(const FoldGroup& group) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim_));
    ParallelRanges(*context_.pool, int64_t{group.count} * heads_, 1, [&](long begin, long end) {
      for (long c = begin; c < end; ++c) {
        const int64_t head = c % heads_;
        const float* q = buffers_.queries + (group.first + c / heads_) * width_ + head * dim_;
        const float* keys = args_.keys.host.data() + head * dim_ * width_;
        float* u = buffers_.vectors + c * width_;
        std::fill_n(u, width_, 0.0f);
        for (int64_t d = 0; d < dim_; ++d) {
          vectors_.add_scaled(u, keys + d * width_, q[d] * scale, width_);
        }
      }
    });
  }

  void Score(const FoldGroup& group) {
    const int64_t columns = int64_t{group.count} * heads_;
    const float* x = args_.x.floats() + group.row0 * width_;
    ParallelRanges(*context_.pool, group.tokens, 16, [&](long begin, long end) {
      for (long t = begin; t < end; ++t) {
        vectors_.dots(x + t * width_, buffers_.vectors, columns, width_,
                      buffers_.scores + t * columns);
      }
    });
  }

  void Pool(const FoldGroup& group) {
    kernels::PoolValue value;
    value.data = args_.x.floats() + group.row0 * width_;
    value.row_stride = width_;
    value.width = static_cast<int>(width_);
    value.out = buffers_.means;
    const std::array<int32_t, 2> offsets = {0, group.tokens};
    kernels::PoolCall call;
    call.scores = buffers_.scores;
    call.columns = call.columns_per_head = group.count * static_cast<int>(heads_);
    call.score_stride = call.columns;
    call.visible = args_.folds.visible + group.row0;
    call.offsets = offsets;
    call.values = {&value, 1};
    const kernels::WorkspaceBytes bytes = MeasurePool(call);
    PoolSegments(call, kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool);
  }

  // out[i, a, d] = Wv[a, d, :] . mean[a] + bv[a, d]
  void ProjectValues(const FoldGroup& group) {
    const float* bias = args_.key_value.host->bias.data() + width_;
    const int64_t columns = int64_t{group.count} * heads_;
    ParallelRanges(*context_.pool, columns, 1, [&](long begin, long end) {
      std::array<float, kernels::kMaxHeadDim> values;
      for (long c = begin; c < end; ++c) {
        const int64_t head = c % heads_;
        const float* matrix = args_.values.host.data() + head * dim_ * width_;
        vectors_.dots(buffers_.means + c * width_, matrix, dim_, width_, values.data());
        vectors_.add_scaled(values.data(), bias + head * dim_, 1.0f, dim_);
        const int32_t out = args_.folds.outs.data[group.first + c / heads_];
        rows_.narrow(values.data(), dim_,
                     args_.out.Row(out) + head * dim_ * ElementBytes(context_.compute));
      }
    });
  }

  const AttendFolded& args_;
  const ComputeContext& context_;
  const HostFoldBuffers& buffers_;
  const RowKernels& rows_;
  const VectorKernels& vectors_;
  const int64_t width_, heads_, dim_;
};

}  // namespace

void AttendFolded::OnHost(HostBackend& host) const {
  if (folds.groups.empty()) return;
  Carver scratch = host.Scratch();
  const HostFoldBuffers buffers = Carve(*this, host.compute(), scratch);
  if (!host.Runs(scratch)) return;
  Folding folding(*this, host.context(), buffers);
  folding.ProjectQueries(host.times());
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  for (const FoldGroup& group : folds.groups) folding.Attend(group);
}

}  // namespace longview::models::ops
