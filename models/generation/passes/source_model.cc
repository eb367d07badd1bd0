#include "models/generation/passes/source_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/encoder/host_pass.h"
#include "models/encoder/pass.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// Layer by layer, in scratch of its own.
class LayerReader final : public SourceReader {
 public:
  LayerReader(std::unique_ptr<EncoderPass> forward, const SourceReading& what, int64_t width)
      : layers_(forward->layers()),
        tokens_(what.document.tokens()),
        width_(width),
        states_(what.states),
        pass_(std::move(forward), what.host, scratch_pool_, what.times) {}

  int64_t held_bytes() const override { return static_cast<int64_t>(pass_.scratch_bytes()); }

  bool Advance(int read) override {
    const int64_t until = layers_ * read / tokens_;
    if (done_ < until) {
      (void)pass_.Advance();
      ++done_;
    }
    if (done_ == layers_ && states_ != nullptr) {
      std::copy_n(pass_.Rows(0), tokens_ * width_, states_);
    };
    return done_ < until;
  }

 private:
  const int64_t layers_, tokens_, width_;
  float* const states_;
  ScratchPool scratch_pool_{0};
  HostPass pass_;
  int64_t done_ = 0;
};

}  // namespace

DeviceRunBytes SourceModel::MostBytes(
    absl::FunctionRef<DeviceRunBytes(Sequences)> most_bytes) const {
  return LongestDocumentBytes(max_tokens(), most_bytes);
}

SourceNeed SourceModel::HostNeed(const ComputeContext&, const EncoderSequence&,
                                 const ForwardNeed& forward) const {
  return {static_cast<int64_t>(forward.memory()), static_cast<int64_t>(forward.transient)};
}

std::unique_ptr<SourceReader> SourceModel::Read(const SourceReading& what) const {
  // Steps choose their threads one by one, so a later one may have more than this one has.
  const TeamScope all(WholeTeam());
  const std::array<const EncoderSequence*, 1> one = {&what.document};
  return std::make_unique<LayerReader>(Forward(what.frame, one, &what.kept, what.states != nullptr),
                                       what, width());
}

}  // namespace longview::models
