#include "models/luna_decoder/states.h"

#include <algorithm>
#include <cstring>

#include "kernels/outer/running_outer.h"
#include "models/luna_decoder/document.h"

namespace longview::models {
namespace {

using kernels::BlockPool;

int64_t LayerFloats(const LunaDecoderConfig& config) {
  return kernels::OuterStateFloats(config.heads, config.head_dim(), config.projected);
}

size_t UsedBytes(const LunaDecoderConfig& config) {
  return static_cast<size_t>(LayerFloats(config) * config.layers) * sizeof(float);
}

}  // namespace

LunaStates::LunaStates(const LunaDecoderConfig& config, kernels::CacheBudget* budget)
    : layer_floats_(LayerFloats(config)), used_bytes_(UsedBytes(config)), budget_(budget) {}

LunaStates::~LunaStates() {
  if (pool_ == nullptr) return;  // Never joined.
  const auto lock = budget_->Lock();
  budget_->Leave(this);
  budget_->AddHeadroom(-pool_->block_bytes());
  pool_.reset();
}

int64_t LunaStates::StateBytes(const LunaDecoderConfig& config) {
  return static_cast<int64_t>(kernels::AlignUp(UsedBytes(config), BlockPool::kPage));
}

std::unique_ptr<LunaStates> LunaStates::Create(const LunaDecoderConfig& config,
                                               kernels::CacheBudget* budget) {
  const int64_t bytes = StateBytes(config);
  // One more than fits: of a step that copies the last state there is room for.
  const int64_t blocks = std::min<int64_t>(budget->capacity() / bytes + 1, INT32_MAX);
  std::unique_ptr<LunaStates> states(new LunaStates(config, budget));
  states->pool_ =
      BlockPool::Create({static_cast<size_t>(bytes), 0}, static_cast<int32_t>(blocks), budget);
  if (states->pool_ == nullptr) return nullptr;
  const auto lock = budget->Lock();
  budget->Join(states.get());
  budget->AddHeadroom(bytes);
  return states;
}

bool LunaStates::Own(int32_t& block) {
  const auto lock = budget_->Lock();
  if (block >= 0 && pool_->exclusive(block)) return true;
  const int32_t own = pool_->Take();
  if (own < 0) return false;
  if (block < 0) {
    std::memset(pool_->part(0, own), 0, used_bytes_);
  } else {
    std::memcpy(pool_->part(0, own), pool_->part(0, block), used_bytes_);
    pool_->DropUser(block);
  }
  block = own;
  return true;
}

void LunaStates::Share(int32_t block) {
  if (block < 0) return;
  const auto lock = budget_->Lock();
  pool_->AddUser(block);
}

void LunaStates::Drop(int32_t block) {
  if (block < 0) return;
  const auto lock = budget_->Lock();
  pool_->DropUser(block);
}

LunaSequence::~LunaSequence() { states_->Drop(block_); }

int LunaSequence::unencoded() const { return document_ == nullptr ? 0 : document_->unencoded(); }

std::span<const float> LunaSequence::encoder_states() const {
  return document_ == nullptr ? std::span<const float>() : document_->states();
}

std::unique_ptr<DecoderSequence> LunaSequence::Fork() const {
  auto fork = std::make_unique<LunaSequence>(states_, document_);
  states_->Share(block_);
  fork->block_ = block_;
  fork->tokens_ = tokens_;
  return fork;
}

}  // namespace longview::models
