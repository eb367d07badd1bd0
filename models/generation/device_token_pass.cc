#include "models/generation/device_token_pass.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace longview::models {

using kernels::CacheStep;

PassStep::Rules DeviceRules(std::string family, int vocab) {
  PassStep::Rules rules = {std::move(family), vocab};
  rules.pass_tokens = kDevicePassTokens;
  rules.pass_runs = kDevicePassRuns;
  return rules;
}

kernels::ProjectionCache::Options DeviceCacheOptions(kernels::BlockMemory* memory) {
  kernels::ProjectionCache::Options options;
  options.step_tokens = kDevicePassTokens;
  options.step_sequences = 2 * kDevicePassRuns;
  options.memory = memory;
  return options;
}

namespace {

// Long chunks at the end of texts of `end` tokens, and beside them as many short pieces and
// decoding runs as there may be: more than any pass has in rows and in tiles.
std::vector<TokenRun> LargestRuns(int64_t end, std::span<const int32_t> ids) {
  std::vector<TokenRun> runs;
  const auto add = [&](CacheStep::Group group, int64_t tokens, int64_t start) {
    TokenRun& run = runs.emplace_back();
    run.group = group;
    run.ids = ids.first(static_cast<size_t>(tokens));
    run.start = start;
    run.wanted = tokens;
  };
  for (int64_t left = std::ssize(ids); left > 0 && std::ssize(runs) < kDevicePassRuns;) {
    const int64_t tokens = std::min(left, end);
    add(CacheStep::kPrefill, tokens,
        (end - tokens) / kernels::kBlockSlots * kernels::kBlockSlots);
    left -= tokens;
  }
  for (const CacheStep::Group group : {CacheStep::kResume, CacheStep::kDecode}) {
    for (int i = 0; i < kDevicePassRuns; ++i) add(group, 1, end - 1);
  }
  return runs;
}

OpsNeed CountOnDevice(TokenForward& forward, Compute compute) {
  DeviceCount count(compute);
  CountForward(forward, kDeviceLogitRows, count);
  return count.need();
}

}  // namespace

// Where spans begin moves with the text: a quarter more.
DeviceTokenNeed MostTokenNeed(Compute compute, int max_tokens, MakeForward make) {
  const std::vector<int32_t> ids(static_cast<size_t>(kDevicePassTokens));
  const OpsNeed need = CountOnDevice(*make(LargestRuns(max_tokens, ids)), compute);
  const auto roomy = [](size_t bytes) { return AlignForDevice(bytes + bytes / 4); };
  return {roomy(need.lists), roomy(need.memory())};
}

double DeviceTokenWorkspace::DeviceBytes(const DeviceTokenNeed& room, int vocab) {
  return static_cast<double>(room.lists + room.buffers +
                             DeviceSampler::DeviceBytes(vocab, kDevicePassRuns));
}

DeviceTokenWorkspace::DeviceTokenWorkspace(const Device& device, const DeviceTokenNeed& room,
                                           int vocab)
    : room_(room),
      vocab_(vocab),
      buffers_(device, room.buffers),
      pinned_(device, static_cast<size_t>(kDeviceLogitRows * vocab) * sizeof(float)),
      upload_(device.api(), device.index()),
      sampler_(device, vocab, kDevicePassRuns) {
  device.Check(upload_.Reserve(room.lists), "lists of passes");
}

DeviceTokenPass::DeviceTokenPass(std::unique_ptr<TokenForward> forward, const Device& device,
                                 Compute compute, const kernels::cuda::DeviceBlocks& blocks,
                                 DeviceTokenWorkspace& workspace, EncoderTimes* times)
    : forward_(std::move(forward)),
      device_(device),
      blocks_(blocks),
      workspace_(workspace),
      timer_(device, times),
      ops_(device, compute),
      results_(device, workspace.sampler(), workspace.pinned_logits(), workspace.vocab()) {
  for (const TokenRun& run : forward_->runs()) {
    for (int64_t row = 0; row < run.wanted; ++row) wanted_.push_back({&run, row});
  }
}

DeviceTokenPass::~DeviceTokenPass() {
  // The device may still read for a pass that was given up what the next one writes.
  if (open_) (void)device_.api().synchronize(device_.stream());
}

absl::Status DeviceTokenPass::Begin() {
  if (absl::Status status = forward_->Append(); !status.ok()) return status;
  device_.Check(blocks_.status(), "copying blocks of the cache");
  need_ = CountOnDevice(*forward_, ops_.compute());
  const DeviceTokenNeed& room = workspace_.room();
  if (need_.lists > room.lists || need_.memory() > room.buffers) {
    throw DeviceError(device_.name() + ": a pass is too large");
  }
  return absl::OkStatus();
}

void DeviceTokenPass::StageAndEmbed() {
  kernels::cuda::StepUpload& upload = workspace_.upload();
  std::byte* pinned = nullptr;
  device_.Check(upload.Begin(&pinned), "a pass's lists");
  StagedLists lists(pinned, upload.device());
  ops_.StageInto(lists);
  forward_->Stage(ops_);
  device_.Check(upload.Send(device_.stream(), lists.used()), "a pass's lists");
  Carver carver(workspace_.buffers());
  ops_.UseMemory(carver, need_);
  forward_->Take(ops_);
  forward_->Embed(ops_);
}

bool DeviceTokenPass::Advance() {
  const Device::Turn turn(device_);
  open_ = true;
  if (layer_ == 0) timer_.Run(&EncoderTimes::rest, [&] { StageAndEmbed(); });
  ops_.set_timer(&timer_);
  forward_->Layer(ops_, layer_);
  ops_.set_timer(nullptr);
  if (++layer_ < forward_->layers()) return true;
  timer_.Run(&EncoderTimes::rest, [&] { BringResults(); });
  open_ = false;
  forward_->End();
  return false;
}

void DeviceTokenPass::BringResults() {
  const int64_t rows = std::ssize(wanted_);
  for (int64_t first = 0; first < rows; first += kDeviceLogitRows) {
    const int64_t count = std::min(kDeviceLogitRows, rows - first);
    BringRows(forward_->Logits(ops_, first, count), first, count);
    results_.Take();
  }
}

void DeviceTokenPass::BringRows(const Rows& logits, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto& [run, row] = wanted_[static_cast<size_t>(first + i)];
    const float* const from = logits.floats() + i * logits.stride;
    if (run->group == CacheStep::kDecode) {
      results_.BringOrChoose(from, *run);
    } else {
      results_.Bring(from, run->logits + row * workspace_.vocab());
    }
  }
  results_.Choose();
}

}  // namespace longview::models
