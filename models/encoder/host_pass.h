// A pass on the host, whose sequences may leave between layers.
#pragma once

#include <memory>
#include <utility>

#include "models/encoder/batch.h"
#include "models/encoder/pass.h"
#include "models/forward/host_runner.h"

namespace longview::models {

// Used by the executor's thread; throws what LibTorch and the allocator throw. Sequences count as
// they were given.
class HostPass final : public EncoderBatch {
 public:
  // REQUIRES: context and scratch outlive it. `times` may be null.
  HostPass(std::unique_ptr<EncoderPass> pass, const ComputeContext& context, ScratchPool& scratch,
           RunTimes* times)
      : pass_(std::move(pass)),
        need_(CountOnHost(*pass_, context).need),
        runner_(*pass_, need_, context, scratch, times) {
    runner_.Begin();
  }

  // Bytes that it borrows of scratch, exactly.
  size_t scratch_bytes() const { return need_.memory(); }

  bool Advance() override {
    if (pass_->batch().drops_pending()) {
      pass_->LeaveDropped(runner_.layer());
      runner_.StageAgain();
    }
    if (pass_->batch().size() == 0 || runner_.done()) return false;
    return runner_.Advance();
  }
  void Drop(int i) override { pass_->batch().Drop(i); }
  const float* Rows(int i) const override {
    const models::Rows wanted = pass_->Wanted();
    return wanted.floats() + pass_->FirstWanted(pass_->batch().PlaceOf(i)) * wanted.width;
  }
  ExtraRowsView Extra(int i) const override {
    const models::Rows extra = pass_->Extra();
    const int place = pass_->batch().PlaceOf(i);
    return {extra.floats() + pass_->FirstExtra(place) * extra.width, pass_->ExtraRows(place)};
  }

 private:
  const std::unique_ptr<EncoderPass> pass_;
  const ForwardNeed need_;
  HostRunner runner_;
};

}  // namespace longview::models
