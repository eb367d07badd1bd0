#include "models/luna_decoder/document.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/span/full_planner.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/luna/pass.h"

namespace longview::models {
namespace {

EncoderSequence WithAllRows(EncoderSequence document) {
  document.wanted.resize(document.ids.size());
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

std::unique_ptr<EncoderPass> EncoderOver(const LunaDecoderContext& context,
                                         EncoderPass::Sequences sequences) {
  const LunaContext& encoder = *context.encoder;
  return std::make_unique<LunaPass>(*encoder.config, *encoder.weights, encoder.compute, sequences,
                                    encoder.tile_rows());
}

int64_t KeyBytes(const LunaDecoderContext& context, int rows) {
  const LunaDecoderConfig& config = *context.config;
  return int64_t{rows} * KeyParts(config) * config.width * ElementBytes(context.compute);
}

// Rows of P over the document's visible tokens.
kernels::Plan PlanPack(const LunaDecoderContext& context, const EncoderSequence& document,
                       int rows) {
  kernels::FullPattern pattern;
  pattern.heads = context.config->cross_pack_heads;
  pattern.split = true;
  pattern.tile_rows = context.encoder->tile_rows();
  const std::vector<kernels::FullSequence> sequences = {
      {0, rows, 0, document.tokens(), document.roles}};
  return PlanFull(pattern, sequences);
}

kernels::Call PackCall(const LunaDecoderContext& context, const std::byte* queries, std::byte* keys,
                       std::byte* out, std::vector<kernels::Source>& sources) {
  const LunaDecoderConfig& config = *context.config;
  const int64_t width = config.width, dim = width / config.cross_pack_heads;
  std::byte* values = config.tied_kv ? keys : Column(keys, width, context.compute);
  sources = {RowsSource(keys, values, context.compute, KeyParts(config) * width, dim)};
  kernels::Call call;
  call.dtype = SpanType(context.compute);
  call.q = queries;
  call.out = out;
  call.q_row_stride = call.out_row_stride = width;
  call.q_head_stride = call.out_head_stride = dim;
  call.Dk = call.Dv = static_cast<int>(dim);
  call.H = config.cross_pack_heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  call.sources = sources;
  return call;
}

}  // namespace

// "T" is an element of the compute type. Inputs of linears hold a panel more than their rows.
struct LunaDocument::Buffers {
  std::byte* source = nullptr;   // T [tokens + panel, d] the encoder's last states.
  float* p = nullptr;            // [rows, d] P as the next layer gets it.
  std::byte* p_raw = nullptr;    // T [rows + panel, d] the same.
  std::byte* p_input = nullptr;  // T [rows + panel, d] what is packed with; post-norm: p_raw.
  float* written = nullptr;      // [rows, d] of pq_proj.
  std::byte* queries = nullptr;  // T [rows, d]
  std::byte* pack = nullptr;     // T [tokens, parts d]
  std::byte* packed = nullptr;   // T [rows + panel, d]
  std::byte* workspace = nullptr;
};

LunaDocument::Buffers LunaDocument::Carve(const LunaDecoderContext& context,
                                          const EncoderSequence& document, Carver& carver) {
  const LunaDecoderConfig& config = *context.config;
  const int rows = ActiveRows(*config.encoder, document);
  const int64_t width = config.width, element = ElementBytes(context.compute);
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * width * element));
  };
  Buffers b;
  b.source = take(document.tokens() + kPanelRows);
  b.p = carver.Take<float>(rows * width);
  b.p_raw = take(rows + kPanelRows);
  b.p_input = config.norms == NormPlace::kPre ? take(rows + kPanelRows) : b.p_raw;
  b.written = carver.Take<float>(rows * width);
  b.queries = take(rows);
  b.pack = take(int64_t{document.tokens()} * KeyParts(config));
  b.packed = take(rows + kPanelRows);
  std::vector<kernels::Source> sources;
  const kernels::Call call = PackCall(context, nullptr, nullptr, nullptr, sources);
  b.workspace =
      carver.TakeBytes(Measure(PlanPack(context, document, rows), call, context.encoder->isa)
                           .total(context.pool->threads()));
  return b;
}

LunaDocument::LunaDocument(const LunaDecoderContext& context, const EncoderSequence& document,
                           kernels::CacheBudget* budget)
    : context_(context),
      document_(WithAllRows(document)),
      budget_(budget),
      wants_states_(!document.wanted.empty()),
      rows_(ActiveRows(*context.config->encoder, document)),
      layer_bytes_(KeyBytes(context, rows_)) {
  const auto bytes = static_cast<int64_t>(Bytes(context_, document));
  const auto lock = budget_->Lock();
  // There is room for who reserved these bytes; what is only kept for later makes way.
  (void)budget_->MakeRoom(bytes);
  budget_->AddUsed(bytes);
}

LunaDocument::~LunaDocument() {
  EncoderSequence asked = document_;
  if (!wants_states_) asked.wanted.clear();
  const auto bytes = static_cast<int64_t>(Bytes(context_, asked));
  const auto lock = budget_->Lock();
  budget_->AddUsed(-bytes);
}

size_t LunaDocument::Bytes(const LunaDecoderContext& context, const EncoderSequence& document) {
  const LunaDecoderConfig& config = *context.config;
  const int rows = ActiveRows(*config.encoder, document);
  const EncoderSequence whole = WithAllRows(document);
  const EncoderSequence* const sequences[] = {&whole};
  Carver carver(nullptr);
  Carve(context, document, carver);
  const size_t packed = sizeof(float) * static_cast<size_t>(kernels::OuterPackedFloats(
                                            config.heads, config.head_dim(), rows));
  const size_t states = document.wanted.empty() ? 0 : whole.ids.size() * config.width;
  return HostPass::ScratchBytes(*EncoderOver(context, sequences), *context.encoder) + carver.used() +
         static_cast<size_t>(config.layers) *
             (packed + static_cast<size_t>(KeyBytes(context, rows))) +
         states * sizeof(float);
}

int64_t LunaDocument::work() const {
  return int64_t{context_.config->encoder->layers} + context_.config->layers;
}

void LunaDocument::Multiply(const DenseLayer& layer, const std::byte* input, int64_t rows,
                            std::byte* out) {
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const int64_t bytes = layer.out() * ElementBytes(context_.compute);
  ForEachRow(layer, input, rows, context_.weights->sizes, *context_.pool, nullptr,
             [&](int64_t row, const std::byte* y) {
               kernels.bias_copy(y, layer.bias.data(), layer.out(), out + row * bytes);
             });
}

// The encoder's last states and P move to where decoder layers read them.
void LunaDocument::EndEncoder() {
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const int64_t width = context_.config->width, row_bytes = width * ElementBytes(context_.compute);
  Carver measure(nullptr);
  Carve(context_, document_, measure);
  scratch_ = Scratch(measure.used());
  std::memset(scratch_.data(), 0, measure.used());
  Carver carver(scratch_.data());
  const Buffers b = Carve(context_, document_, carver);
  const float* x = encoder_->Rows(0);
  for (int64_t t = 0; t < tokens(); ++t) {
    kernels.narrow(x + t * width, width, b.source + t * row_bytes);
  }
  if (wants_states_) states_.assign(x, x + tokens() * width);
  std::memcpy(b.p, encoder_->Extra(0).rows, static_cast<size_t>(rows_ * width) * sizeof(float));
  encoder_.reset();
  keys_.resize(static_cast<size_t>(layer_bytes_ * context_.config->layers));
}

void LunaDocument::PrepareLayer() {
  const LunaDecoderConfig& config = *context_.config;
  const LunaCross& cross = *context_.weights->layers[crossed_].cross;
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
  const int64_t width = config.width, row_bytes = width * ElementBytes(context_.compute);
  const bool pre = config.norms == NormPlace::kPre;
  const std::vector<float> zeros(static_cast<size_t>(width));
  Carver carver(scratch_.data());
  const Buffers b = Carve(context_, document_, carver);
  for (int64_t r = 0; r < rows_; ++r) {
    kernels.narrow(b.p + r * width, width, b.p_raw + r * row_bytes);
    if (pre) {
      kernels.norm(b.p + r * width, cross.projected_norm.view(), width, b.p_input + r * row_bytes);
    }
  }
  ForEachRow(cross.rows, b.p_raw, rows_, context_.weights->sizes, *context_.pool, nullptr,
             [&](int64_t row, const std::byte* y) {
               kernels.bias_widen(y, cross.rows.bias.data(), width, b.written + row * width);
             });
  std::vector<float>& packed = packed_.emplace_back(
      static_cast<size_t>(kernels::OuterPackedFloats(config.heads, config.head_dim(), rows_)));
  kernels::PackOuterRows(b.written, config.heads, config.head_dim(), rows_, packed.data());

  Multiply(cross.pack_query, b.p_input, rows_, b.queries);
  Multiply(cross.pack, b.source, tokens(), b.pack);
  const kernels::Plan plan = PlanPack(context_, document_, rows_);
  std::vector<kernels::Source> sources;
  const kernels::Call call = PackCall(context_, b.queries, b.pack, b.packed, sources);
  RunSpans(*context_.encoder, plan, call, b.workspace);
  Multiply(cross.unpack, b.packed, rows_, keys_.data() + crossed_ * layer_bytes_);

  for (int64_t r = 0; r < rows_; ++r) {
    float* p = b.p + r * width;
    kernels.residual_add(p, b.packed + r * row_bytes, zeros.data(), width, b.p_raw + r * row_bytes);
    if (!pre) {
      floats.residual_norm(p, nullptr, zeros.data(), cross.projected_norm.view(), width, nullptr);
    }
  }
}

bool LunaDocument::Advance() {
  const int64_t until = work() * read_ / tokens();
  if (done() >= until) return false;
  if (encoded_ < context_.config->encoder->layers) {
    if (encoder_ == nullptr) {
      const EncoderSequence* const sequences[] = {&document_};
      encoder_ = std::make_unique<HostPass>(EncoderOver(context_, sequences), *context_.encoder,
                                            keeper_, nullptr);
    }
    if (!encoder_->Advance()) EndEncoder();
    ++encoded_;
  } else {
    PrepareLayer();
    if (++crossed_ == context_.config->layers) scratch_ = Scratch();
  }
  return done() < until;
}

}  // namespace longview::models
