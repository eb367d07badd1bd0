#include "models/encoder/pass_batch.h"

#include <utility>

namespace longview::models {
namespace {

OpsNeed CountOnHost(EncoderPass& pass, const ComputeContext& context) {
  HostCount count(context);
  CountPass(pass, count);
  return count.need();
}

size_t FloatBytes(const models::Rows& rows) {
  return static_cast<size_t>(rows.count * rows.width) * sizeof(float);
}

}  // namespace

HostPass::HostPass(std::unique_ptr<EncoderPass> pass, const ComputeContext& context,
                   ScratchKeeper& scratch, EncoderTimes* times)
    : pass_(std::move(pass)),
      need_(CountOnHost(*pass_, context)),
      scratch_(scratch, need_.memory()),
      ops_(context, need_, scratch_.data(), times) {
  pass_->Stage(ops_);
  pass_->Take(ops_);
}

size_t HostPass::ScratchBytes(EncoderPass& pass, const ComputeContext& context) {
  return CountOnHost(pass, context).memory();
}

bool HostPass::Advance() {
  if (pass_->batch().drops_pending()) {
    pass_->LeaveDropped(layer_);
    pass_->Stage(ops_);
  }
  if (pass_->batch().size() == 0 || layer_ >= pass_->layers()) return false;
  if (layer_ == 0) pass_->Embed(ops_);
  pass_->Layer(ops_, layer_);
  return ++layer_ < pass_->layers();
}

const float* HostPass::Rows(int i) const {
  const models::Rows wanted = pass_->Wanted();
  return wanted.floats() + pass_->FirstWanted(pass_->batch().PlaceOf(i)) * wanted.width;
}

ExtraRowsView HostPass::Extra(int i) const {
  const models::Rows extra = pass_->Extra();
  const int place = pass_->batch().PlaceOf(i);
  return {extra.floats() + pass_->FirstExtra(place) * extra.width, pass_->ExtraRows(place)};
}

DevicePassPart::DevicePassPart(std::unique_ptr<EncoderPass> pass, const Device& device,
                               Compute compute)
    : pass_(std::move(pass)), ops_(device, compute) {
  DeviceCount count(compute);
  CountPass(*pass_, count);
  need_ = count.need();
  bytes_ = {need_.lists, need_.memory(), FloatBytes(pass_->Wanted()) + FloatBytes(pass_->Extra())};
  most_bytes_ = bytes_;
  most_bytes_.lists = need_.most_lists;
}

void DevicePassPart::Stage(StagedLists& lists) {
  ops_.StageInto(lists);
  pass_->Stage(ops_);
}

void DevicePassPart::Carve(Carver& carver) {
  ops_.UseMemory(carver, need_);
  pass_->Take(ops_);
}

void DevicePassPart::RunLayer(int layer, const DeviceTimer& timer) {
  ops_.set_timer(&timer);
  pass_->Layer(ops_, layer);
  ops_.set_timer(nullptr);
}

void DevicePassPart::AddResults(DeviceResults& results) const {
  for (const models::Rows& rows : {pass_->Wanted(), pass_->Extra()}) {
    if (rows) results.Add(rows.data, FloatBytes(rows));
  }
}

}  // namespace longview::models
