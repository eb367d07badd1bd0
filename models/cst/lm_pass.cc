#include "models/cst/lm_pass.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/cst/lm_cache.h"
#include "models/cst/lm_calls.h"
#include "models/cst/lm_logits.h"
#include "models/cst/lm_rows.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/parallel.h"

namespace longview::models {

using kernels::CacheStep;

CstPassLayout CstLmPass::LayOut(const CstContext& context, std::vector<TokenRun> runs) {
  return LayOutCstPass(*context.config, std::move(runs), context.tile_rows());
}

// The wanted rows' logits are computed from z: it holds a panel behind them as behind all rows.
CstSizes CstLmPass::SizesOf(const CstContext& context, const CstPassLayout& layout) {
  CstSizes sizes;
  sizes.rows = layout.rows;
  sizes.slices = layout.closings();
  CstCall call;
  const int threads = context.pool->threads();
  for (const CstGroup& group : layout.groups) {
    const bool fresh = group.group == CacheStep::kPrefill;
    MakePagedTokenCall(context, nullptr, CstBuffers(), CstBlocksKind(context), fresh, call);
    if (!group.tokens.items.empty()) {
      const size_t bytes = Measure(group.tokens, call.call, context.isa).total(threads);
      sizes.workspace = std::max(sizes.workspace, bytes);
    }
    MakePagedSliceCall(context, CstBuffers(), CstBlocksKind(context), call);
    if (!group.slices.items.empty()) {
      const size_t bytes = Measure(group.slices, call.call, context.isa).total(threads);
      sizes.workspace = std::max(sizes.workspace, bytes);
    }
  }
  return sizes;
}

size_t CstLmPass::ScratchBytes(const CstContext& context, const CstPassLayout& layout) {
  Carver carver(nullptr);
  CarveCstBuffers(context, SizesOf(context, layout), carver);
  return carver.used();
}

CstLmPass::CstLmPass(const CstLmContext& context, ScratchKeeper& scratch,
                     std::vector<TokenRun> runs, EncoderTimes* times)
    : context_(context),
      config_(context.config()),
      weights_(*context.rows.weights),
      kernels_(ChooseRowKernels(context.rows.compute)),
      width_(config_.width),
      row_bytes_(width_ * ElementBytes(context.rows.compute)),
      zeros_(static_cast<size_t>(width_)),
      times_(times),
      layout_(LayOut(context.rows, std::move(runs))),
      step_(context.cache),
      scratch_(scratch, ScratchBytes(context.rows, layout_)) {
  const CstSizes sizes = SizesOf(context_.rows, layout_);
  Carver carver(scratch_.data());
  buffers_ = CarveCstBuffers(context_.rows, sizes, carver);
  ClearTails(context_.rows, sizes, buffers_);
}

std::vector<float> CstLmPass::ReadSnapshots() const {
  std::vector<float> snapshots;
  std::vector<float> key(static_cast<size_t>(config_.head_dim()));
  for (const TokenRun& run : layout_.runs) {
    if (!run.sequence->restored()) continue;
    const int64_t slot = run.start / CstGranule(config_) - 1;
    for (int layer = 0; layer < config_.layers; ++layer) {
      const size_t at = snapshots.size();
      snapshots.resize(at + static_cast<size_t>(width_));
      for (int head = 0; head < config_.heads; ++head) {
        context_.cache->ReadRow(run.sequence->cache(), kCstSnapshots, layer, slot, head, key.data(),
                                snapshots.data() + at + head * config_.head_dim());
      }
    }
  }
  return snapshots;
}

void CstLmPass::RestoreStates(const std::vector<float>& snapshots) {
  const float* next = snapshots.data();
  for (const TokenRun& run : layout_.runs) {
    if (run.sequence->restored()) {
      for (int layer = 0; layer < config_.layers; ++layer, next += width_) {
        std::copy_n(next, width_, OpenGlobal(context_.cache->State(run.sequence->cache(), layer)));
      }
    }
    run.sequence->set_read();
  }
}

absl::Status CstLmPass::Begin() {
  const std::vector<float> snapshots = ReadSnapshots();
  if (absl::Status status = AppendRuns(layout_.runs, step_); !status.ok()) return status;
  RestoreStates(snapshots);
  return absl::OkStatus();
}

void CstLmPass::Embed() {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const int threads = context_.rows.pool->threads();
  const int64_t width = config_.embedding_width;
  const bool projects = buffers_.embedded != nullptr;
  kernels::RunOnThreads(*context_.rows.pool, [&](int thread) {
    float* scratch = buffers_.thread_rows + ThreadRowFloats(config_) * thread;
    const int32_t begin = layout_.rows * thread / threads;
    const int32_t end = layout_.rows * (thread + 1) / threads;
    for (int32_t row = begin; row < end; ++row) {
      const auto piece = static_cast<size_t>(layout_.piece_of_row[static_cast<size_t>(row)]);
      const auto index = static_cast<size_t>(layout_.pieces[piece].run);
      const TokenRun& run = layout_.runs[index];
      const int32_t at = row - static_cast<int32_t>(run.row0);
      float* sum = projects ? scratch + width : buffers_.x + row * width;
      EmbedToken(context_.rows, run.ids[static_cast<size_t>(at)],
                 static_cast<int32_t>(run.start) + at, 0, scratch, sum);
      if (!projects) continue;
      kernels_.narrow(sum, width,
                      buffers_.embedded + row * width * ElementBytes(context_.rows.compute));
    }
  });
}

void CstLmPass::Run(const kernels::Plan& plan) {
  RunSpans(context_.rows, plan, call_.call, buffers_.workspace);
}

// Rows of the compute type as the cache stores them, heads side by side.
kernels::ProjectionCache::Rows CstLmPass::HeadRows(const std::byte* k, const std::byte* v,
                                                   int64_t stride) const {
  kernels::ProjectionCache::Rows rows;
  rows.k = k;
  rows.v = v;
  rows.dtype = SpanType(context_.rows.compute);
  rows.k_row_stride = rows.v_row_stride = stride;
  rows.k_head_stride = rows.v_head_stride = config_.head_dim();
  return rows;
}

void CstLmPass::WriteWindow(const CstGroup& group) {
  if (group.runs == 0) return;
  const std::byte* key = buffers_.qkv + (3 * group.row0 + 1) * row_bytes_;
  context_.cache->Write(kCstWindow, layer_, step_.places(group.group, kCstWindow),
                        HeadRows(key, key + row_bytes_, 3 * width_), *context_.rows.pool);
}

// Blocks of a strip as a source of absolute slots; `absolute` is storage of the result.
kernels::Source CstLmPass::Blocks(const CstGroup& group, int strip) {
  const kernels::CacheTable& table = step_.table(group.group, strip);
  absolute_.clear();
  for (size_t s = 0; s < table.first_block.size(); ++s) {
    absolute_.push_back(table.offsets[s] - table.first_block[s]);
  }
  kernels::Source source = context_.cache->PagedSource(strip, layer_, table);
  source.seq_offset = absolute_.data();
  return source;
}

void CstLmPass::AttendGroup(const CstGroup& group, const CstLayer& layer) {
  if (group.runs == 0) return;
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  const bool fresh = group.group == CacheStep::kPrefill;
  MakePagedTokenCall(context_.rows, &layer, buffers_, Blocks(group, kCstWindow), fresh, call_);
  Run(group.tokens);
}

void CstLmPass::AttendTokens(const CstLayer& layer, const std::byte* from) {
  const DenseLayer& project = *layer.token_project.host;
  ForEachRow(project, from, layout_.rows, project.linear.sizes(), *context_.rows.pool, times_,
             [&](int64_t row, std::byte* y) {
               const int32_t place = layout_.PlaceOf(static_cast<int32_t>(row));
               kernels_.bias_copy(y, PlaceRow(layer.token_bias, place), 3 * width_,
                                  buffers_.qkv + 3 * row * row_bytes_);
             });
  // Chunks of prefill read the cache before any of their rows is written to it.
  AttendGroup(layout_.groups[0], layer);
  for (const CstGroup& group : layout_.groups) WriteWindow(group);
  AttendGroup(layout_.groups[1], layer);
  AttendGroup(layout_.groups[2], layer);
}

kernels::PoolState CstLmPass::StateOf(const CstPiece& piece) const {
  return context_.cache->State(layout_.runs[static_cast<size_t>(piece.run)].sequence->cache(),
                               layer_);
}

// Slices that end are pooled to a row of `pooled`, those that stay open to their sequence's state.
void CstLmPass::PoolPieces(const std::byte* from) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  pieces_.clear();
  for (const CstPiece& piece : layout_.pieces) {
    kernels::SlicePiece& part = pieces_.emplace_back();
    part.row0 = piece.row0;
    part.rows = piece.rows;
    part.begins = piece.place == 0;
    part.out = OpenSlice(StateOf(piece));
    if (piece.closing < 0) continue;
    float* pooled = buffers_.pooled + piece.closing * width_;
    if (!part.begins) std::copy_n(part.out, width_, pooled);
    part.out = pooled;
    part.divisor = config_.slice;
  }
  kernels::SlicePoolCall pool;
  pool.pooling = config_.slice_pooling == CstPooling::kMax ? kernels::SlicePooling::kMax
                                                           : kernels::SlicePooling::kMean;
  pool.rows = from;
  pool.dtype = SpanType(context_.rows.compute);
  pool.row_stride = width_;
  pool.channels = config_.width;
  pool.pieces = pieces_;
  PoolSlices(pool, *context_.rows.pool);
}

// An open slice's state is its rows; a slice that ends goes through the linear whole.
void CstLmPass::PoolLinearly(const DenseLayer& pool, const std::byte* from) {
  for (const CstPiece& piece : layout_.pieces) {
    float* open = OpenSlice(StateOf(piece));
    std::byte* whole = piece.closing < 0
                           ? nullptr
                           : buffers_.slice_tokens + piece.closing * config_.slice * row_bytes_;
    for (int32_t i = 0; whole != nullptr && i < piece.place; ++i) {
      kernels_.narrow(open + i * width_, width_, whole + i * row_bytes_);
    }
    for (int32_t i = 0; i < piece.rows; ++i) {
      const std::byte* row = from + (piece.row0 + i) * row_bytes_;
      const int64_t place = piece.place + i;
      if (whole != nullptr) {
        std::memcpy(whole + place * row_bytes_, row, static_cast<size_t>(row_bytes_));
      } else {
        kernels_.bias_widen(row, zeros_.data(), width_, open + place * width_);
      }
    }
  }
  ForEachRow(pool, buffers_.slice_tokens, layout_.closings(), pool.linear.sizes(),
             *context_.rows.pool, times_, [&](int64_t s, std::byte* y) {
               kernels_.bias_widen(y, pool.bias.data(), width_, buffers_.pooled + s * width_);
             });
}

// Of a finished slice: the query that the next slice's tokens ask with, and the key and value that
// later slices see.
void CstLmPass::ProjectSlices(const CstLayer& layer) {
  if (context_.rows.compute != Compute::kFp32) {
    for (int32_t s = 0; s < layout_.closings(); ++s) {
      kernels_.narrow(buffers_.pooled + s * width_, width_, buffers_.slice_input + s * row_bytes_);
    }
  }
  const DenseLayer& project = *layer.slice_project().host;
  ForEachRow(project, buffers_.slice_input, layout_.closings(), project.linear.sizes(),
             *context_.rows.pool, times_, [&](int64_t s, std::byte* y) {
               const auto piece =
                   static_cast<size_t>(layout_.closing_pieces[static_cast<size_t>(s)]);
               const int32_t number = layout_.pieces[piece].number;
               const float* own = PlaceRow(layer.slice_bias, number);
               const float* asks =
                   PlaceRow(layer.slice_bias, number + (config_.shifted_before ? 1 : 0));
               std::byte* qkv = buffers_.slice_qkv + 3 * s * row_bytes_;
               kernels_.bias_copy(y, asks, width_, qkv);
               kernels_.bias_copy(y + row_bytes_, own + width_, 2 * width_, qkv + row_bytes_);
             });
}

void CstLmPass::WriteSlices(const CstGroup& group) {
  if (group.closings == 0) return;
  const std::byte* key = buffers_.slice_qkv + (3 * int64_t{group.closing0} + 1) * row_bytes_;
  context_.cache->Write(kCstSlices, layer_, step_.places(group.group, kCstSlices),
                        HeadRows(key, key + row_bytes_, 3 * width_), *context_.rows.pool);
}

void CstLmPass::WriteSnapshots(const CstGroup& group) {
  const std::span<const kernels::CachePlace> places = step_.places(group.group, kCstSnapshots);
  for (size_t i = 0; i < group.snapshots.size(); ++i) {
    const std::byte* row = buffers_.slice_z + group.snapshots[i] * row_bytes_;
    context_.cache->Write(kCstSnapshots, layer_, places.subspan(i, 1), HeadRows(row, row, width_),
                          *context_.rows.pool);
  }
}

void CstLmPass::AttendSlices(const CstLayer& layer, const std::byte* from) {
  layer.pool.host ? PoolLinearly(*layer.pool.host, from) : PoolPieces(from);
  if (layout_.closings() == 0) return;
  ProjectSlices(layer);
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  for (const CstGroup& group : layout_.groups) WriteSlices(group);
  for (const CstGroup& group : layout_.groups) {
    if (group.closings == 0) continue;
    MakePagedSliceCall(context_.rows, buffers_, Blocks(group, kCstSlices), call_);
    Run(group.slices);
  }
  for (const CstGroup& group : layout_.groups) WriteSnapshots(group);
  if (context_.rows.compute == Compute::kFp32) return;
  for (int32_t s = 0; s < layout_.closings(); ++s) {
    kernels_.bias_widen(buffers_.slice_z + s * row_bytes_, zeros_.data(), width_,
                        buffers_.slice_sum + s * width_);
  }
}

// Y_g of the piece's slice: none in a document's first, that of the slice before where this pass
// finished it, else the state's.
const float* CstLmPass::GlobalOf(size_t piece) const {
  const CstPiece& own = layout_.pieces[piece];
  if (own.number == 0) return zeros_.data();
  if (piece > 0 && layout_.pieces[piece - 1].run == own.run) {
    return buffers_.slice_sum + layout_.pieces[piece - 1].closing * width_;
  }
  return OpenGlobal(StateOf(own));
}

void CstLmPass::AddSlices(const std::byte* from) {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  ParallelRanges(
      *context_.rows.pool, static_cast<long>(layout_.pieces.size()), 1, [&](long begin, long end) {
        for (long i = begin; i < end; ++i) {
          const CstPiece& piece = layout_.pieces[static_cast<size_t>(i)];
          const float* add = GlobalOf(static_cast<size_t>(i));
          for (int64_t row = piece.row0; row < piece.row0 + piece.rows; ++row) {
            kernels_.bias_copy(from + row * row_bytes_, add, width_, buffers_.z + row * row_bytes_);
          }
        }
      });
}

// What the next pass's first rows add.
void CstLmPass::StoreGlobals() {
  for (size_t i = 0; i < layout_.pieces.size(); ++i) {
    const CstPiece& piece = layout_.pieces[i];
    if (!piece.last) continue;
    const float* next =
        piece.closing < 0 ? GlobalOf(i) : buffers_.slice_sum + piece.closing * width_;
    float* state = OpenGlobal(StateOf(piece));
    if (next != state) std::copy_n(next, width_, state);
  }
}

// Moves the rows whose logits are wanted to the front of x and z.
void CstLmPass::GatherWanted() {
  int64_t kept = 0;
  wanted_.clear();
  for (const TokenRun& run : layout_.runs) {
    const int64_t end = run.end();
    for (int64_t row = end - run.wanted; row < end; ++row, ++kept) {
      wanted_.push_back(run.logits + (row - end + run.wanted) * config_.vocab);
      if (kept == row) continue;
      std::copy_n(buffers_.x + row * width_, width_, buffers_.x + kept * width_);
      std::copy_n(buffers_.z + row * row_bytes_, row_bytes_, buffers_.z + kept * row_bytes_);
    }
  }
}

bool CstLmPass::Advance() {
  if (layer_ == 0) {
    Embed();
    ProjectEmbeddings(context_.rows, layout_.rows, buffers_, times_);
    EnterLayers(context_.rows, layout_.rows, buffers_);
  }
  const CstLayer& layer = weights_.layers[static_cast<size_t>(layer_)];
  switch (config_.order) {
    case CstOrder::kComposition:
      AttendTokens(layer, buffers_.input);
      AttendSlices(layer, buffers_.z);
      break;
    case CstOrder::kParallel:
      AttendSlices(layer, buffers_.input);
      AttendTokens(layer, buffers_.input);
      break;
    case CstOrder::kGlobalFirst:
      AttendSlices(layer, buffers_.input);
      AddSlices(buffers_.input);
      AttendTokens(layer, buffers_.z);
      break;
  }
  AddSlices(buffers_.z);
  StoreGlobals();
  const bool last = layer_ + 1 == config_.layers;
  if (last) GatherWanted();
  const BlockTail tail = TailOf(context_.rows, layer_);
  RunBlockTail(tail,
               {buffers_.x, buffers_.input, buffers_.z, last ? layout_.wanted : layout_.rows},
               models::SizesOf(tail), *context_.rows.pool, times_);
  if (last) {
    WriteCstLogits(context_.rows, wanted_, buffers_);
    step_.End();
  }
  return ++layer_ < config_.layers;
}

}  // namespace longview::models
