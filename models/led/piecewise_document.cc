#include "models/led/piecewise_document.h"

#include <algorithm>
#include <utility>

#include "models/led/document_pass.h"
#include "models/ops/host_ops.h"

namespace longview::models {

double PiecewiseDocument::ReadingBytes(const LedContext& context,
                                       const EncoderSequence& document) {
  return static_cast<double>(PiecewiseEncoder::HeldBytes(context.encoder, document)) +
         static_cast<double>(StateBytes(context, document));
}

size_t PiecewiseDocument::PieceBytes(const LedContext& context, const EncoderSequence& document) {
  const int64_t element = ElementBytes(context.decoder.compute);
  const int64_t width = context.decoder.config->width;
  KeyRows all;
  all.rows.resize(static_cast<size_t>(document.tokens()));
  all.places.resize(all.rows.size());
  HostCount keys(context.encoder);
  DocumentKeys made(context, all);
  made.Stage(keys);
  made.Take(keys);
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const int64_t widest = std::max(3 * width, int64_t{context.encoder.config->intermediate}) + width;
  return std::max(PiecewiseEncoder::PieceBytes(context.encoder, document), keys.need().memory()) +
         static_cast<size_t>(kPanelRows * widest * element);
}

void PiecewiseDocument::Drop() {
  encoder_.reset();
  held_.Keep(0);
}

absl::Status PiecewiseDocument::Begin(int tokens) {
  if (encoder_ == nullptr) {
    if (!held_.Take(static_cast<int64_t>(ReadingBytes(context_, document_)))) {
      return absl::ResourceExhaustedError("cache: no memory to read a document");
    }
    EncodedRows& sink = *this;
    encoder_ =
        std::make_unique<PiecewiseEncoder>(context_.encoder, document_, sink, scratch_, times_);
    states_.resize(static_cast<size_t>(StateBytes(context_, document_)));
  }
  read_ += tokens;
  until_ = encoder_->RowsUntil(read_);
  return absl::OkStatus();
}

absl::Status PiecewiseDocument::Advance(bool* more) {
  *more = encoder_->Advance(until_);
  if (no_memory_) return absl::ResourceExhaustedError("cache: no memory for a document's keys");
  if (*more || unencoded() > 0) return absl::OkStatus();
  encoder_.reset();
  held_.Keep(StateBytes(context_, document_));
  return absl::OkStatus();
}

double PiecewiseDocument::LinearWork() const {
  const StackConfig& config = *context_.decoder.config;
  return 2.0 * config.layers() * config.width * config.width;
}

void PiecewiseDocument::Take(int64_t first, int64_t count, const float* x,
                             const std::byte* input) {
  const int64_t width = context_.decoder.config->width;
  if (!states_.empty()) {
    std::copy_n(x, count * width, reinterpret_cast<float*>(states_.data()) + first * width);
  }
  KeyRows keys;
  no_memory_ = no_memory_ || !Append(first, count, keys);
  if (no_memory_ || keys.rows.empty()) return;
  Rows rows;
  rows.data = const_cast<std::byte*>(input);
  rows.count = count;
  rows.width = rows.stride = width;
  rows.element = ElementBytes(context_.decoder.compute);
  const auto store = [&](Ops& ops) {
    DocumentKeys made(context_, keys);
    made.Stage(ops);
    made.Take(ops);
    made.Store(ops, rows);
  };
  HostCount counted(context_.encoder);
  store(counted);
  const ScratchLoan loan(scratch_, counted.need().memory());
  HostOps ops(context_.encoder, counted.need(), loan.data(), times_);
  store(ops);
}

}  // namespace longview::models
