#include "models/cst/lm_buffers.h"

#include <cmath>
#include <cstring>

#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

// Attention of rows of [3D] to rows of [3D].
void MakeCall(const CstContext& context, std::byte* qkv, std::byte* out, CstCall& call) {
  const CstConfig& config = *context.config;
  const int64_t width = config.width;
  call.sources = {RowsSource(Column(qkv, width, context.compute),
                             Column(qkv, 2 * width, context.compute), context.compute, 3 * width,
                             config.head_dim())};
  call.tables.clear();
  call.call = {};
  call.call.dtype = SpanType(context.compute);
  call.call.q = qkv;
  call.call.out = out;
  call.call.q_row_stride = 3 * width;
  call.call.out_row_stride = width;
  call.call.q_head_stride = call.call.out_head_stride = config.head_dim();
  call.call.Dk = call.call.Dv = config.head_dim();
  call.call.H = config.heads;
  call.call.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
}

}  // namespace

void MakeTokenCall(const CstContext& context, const CstLayer* layer, const CstBuffers& buffers,
                   CstCall& call) {
  const CstConfig& config = *context.config;
  MakeCall(context, buffers.qkv, buffers.z, call);
  if (config.zero_boundary && config.extension > 0) {
    kernels::Source zeros =
        RowsSource(nullptr, nullptr, Compute::kFp32, config.width, config.head_dim());
    if (layer != nullptr) {
      zeros.k = layer->boundary_keys.data();
      zeros.v = layer->boundary_values.data();
      if (layer->boundary_keys.rows() == 1) zeros.k_row_stride = zeros.v_row_stride = 0;
    }
    call.sources.push_back(zeros);
  }
  if (config.relative_keys()) {
    kernels::Table table;
    if (layer != nullptr) table.data = layer->key_rows.data();
    table.entries = config.local_keys();
    table.head_stride = config.head_dim();
    table.entry_stride = config.width;
    call.tables.push_back(table);
  }
  call.call.sources = call.sources;
  call.call.tables = call.tables;
}

void MakeSliceCall(const CstContext& context, const CstBuffers& buffers, CstCall& call) {
  MakeCall(context, buffers.slice_qkv, buffers.slice_z, call);
  call.call.sources = call.sources;
}

int64_t ThreadRowFloats(const CstConfig& config) { return 2 * int64_t{config.embedding_width}; }

CstBuffers CarveCstBuffers(const CstContext& context, const CstSizes& sizes, Carver& carver) {
  const CstConfig& config = *context.config;
  const int64_t width = config.width;
  const bool floats = context.compute == Compute::kFp32;
  const auto take = [&](int64_t rows, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(rows * columns * ElementBytes(context.compute)));
  };
  CstBuffers b;
  b.x = carver.Take<float>((sizes.rows + kPanelRows) * width);
  const bool shared = floats && config.norms == NormPlace::kPost;
  b.input = shared ? reinterpret_cast<std::byte*>(b.x) : take(sizes.rows + kPanelRows, width);
  if (config.embedding_width != width) {
    b.embedded = take(sizes.rows + kPanelRows, config.embedding_width);
  }
  b.qkv = take(sizes.rows, 3 * width);
  b.z = take(sizes.rows + kPanelRows, width);
  b.pooled = carver.Take<float>((sizes.slices + kPanelRows) * width);
  b.slice_input =
      floats ? reinterpret_cast<std::byte*>(b.pooled) : take(sizes.slices + kPanelRows, width);
  if (config.slice_pooling == CstPooling::kLinear) {
    b.slice_tokens = take(sizes.slices + kPanelRows, config.slice * width);
  }
  b.slice_qkv = take(sizes.slices, 3 * width);
  b.slice_z = take(sizes.slices, width);
  b.slice_sum =
      floats ? reinterpret_cast<float*>(b.slice_z) : carver.Take<float>(sizes.slices * width);
  b.thread_rows = carver.Take<float>(ThreadRowFloats(config) * context.pool->threads());
  b.workspace = carver.TakeBytes(sizes.workspace);
  return b;
}

void ClearTails(const CstContext& context, const CstSizes& sizes, const CstBuffers& buffers) {
  const CstConfig& config = *context.config;
  const auto clear = [&](std::byte* rows, int64_t count, int64_t columns) {
    if (rows == nullptr) return;
    const int64_t bytes = columns * ElementBytes(context.compute);
    std::memset(rows + count * bytes, 0, static_cast<size_t>(kPanelRows * bytes));
  };
  clear(buffers.input, sizes.rows, config.width);
  clear(buffers.embedded, sizes.rows, config.embedding_width);
  clear(buffers.z, sizes.rows, config.width);
  clear(buffers.slice_input, sizes.slices, config.width);
  clear(buffers.slice_tokens, sizes.slices, int64_t{config.slice} * config.width);
}

}  // namespace longview::models
