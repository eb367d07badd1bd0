#include "models/generation/passes/device_token_pass.h"

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include "models/status_macros.h"

namespace longview::models {

using kernels::CacheStep;

PassStep::Rules DeviceRules(std::string family, int vocab) {
  PassStep::Rules rules = {std::move(family), vocab};
  rules.pass_tokens = kDevicePassTokens;
  rules.pass_runs = kDevicePassRuns;
  rules.chooses = DeviceSampler::Takes;
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

// Long chunks at the end of texts of `end` tokens, of up to `longest` tokens, and beside them as
// many short pieces and decoding runs as there may be: more than any pass has in rows and in tiles.
std::vector<TokenRun> LargestRuns(int64_t end, int64_t longest, std::span<const int32_t> ids) {
  std::vector<TokenRun> runs;
  const auto add = [&](CacheStep::Group group, int64_t tokens, int64_t start) {
    TokenRun& run = runs.emplace_back();
    run.group = group;
    run.ids = ids.first(static_cast<size_t>(tokens));
    run.start = start;
    run.wanted = tokens;
  };
  for (int64_t left = std::ssize(ids); left > 0 && std::ssize(runs) < kDevicePassRuns;) {
    const int64_t tokens = std::min({left, end, longest});
    add(CacheStep::kPrefill, tokens, (end - tokens) / kernels::kBlockSlots * kernels::kBlockSlots);
    left -= tokens;
  }
  for (const CacheStep::Group group : {CacheStep::kResume, CacheStep::kDecode}) {
    for (int i = 0; i < kDevicePassRuns; ++i) add(group, 1, end - 1);
  }
  return runs;
}

// Runs of LargestRuns that decode.
std::vector<TokenRun> DecodingRuns(int64_t end, std::span<const int32_t> ids) {
  std::vector<TokenRun> runs = LargestRuns(end, kDevicePassTokens, ids);
  std::erase_if(runs, [](const TokenRun& run) { return run.group != CacheStep::kDecode; });
  return runs;
}

ForwardNeed CountOnDevice(TokenForward& forward, Compute compute, bool rounds = false) {
  DeviceBackend count(compute, rounds);
  CountForward(forward, kDeviceLogitRows, count);
  return count.need();
}

}  // namespace

// Adds a quarter to the largest need counted, because the begin of spans moves with the text.
DeviceTokenNeed MostTokenNeed(Compute compute, const DeviceTokenTexts& texts, MakeForward make) {
  const std::vector<int32_t> ids(static_cast<size_t>(kDevicePassTokens));
  const int64_t longest = texts.boundary > 0 ? texts.boundary : kDevicePassTokens;
  std::vector<int> ends = texts.ends;
  ends.push_back(texts.max_tokens);
  DeviceTokenNeed most;
  for (const int end : ends) {
    const std::unique_ptr<TokenForward> forward =
        make(LargestRuns(std::min(end, texts.max_tokens), longest, ids));
    const ForwardNeed need = CountOnDevice(*forward, compute);
    const ForwardNeed decoding =
        CountOnDevice(*make(DecodingRuns(std::min(end, texts.max_tokens), ids)), compute, true);
    most.lists = std::max({most.lists, need.lists, decoding.lists});
    most.buffers = std::max({most.buffers, need.memory(), decoding.memory()});
  }
  const auto roomy = [](size_t bytes) { return AlignForDevice(bytes + bytes / 4); };
  return {roomy(most.lists), roomy(most.buffers)};
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
      sampler_(device, vocab, kDevicePassRuns),
      recordings_(device.api(), kRecordings) {
  device.Check(upload_.Reserve(room.lists), "lists of passes");
}

DeviceTokenPass::DeviceTokenPass(std::unique_ptr<TokenForward> forward, const Device& device,
                                 Compute compute, const kernels::cuda::DeviceBlocks& blocks,
                                 DeviceTokenWorkspace& workspace, RunTimes* times)
    : forward_(std::move(forward)),
      device_(device),
      blocks_(blocks),
      workspace_(workspace),
      timed_(times != nullptr),
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
  RETURN_IF_ERROR(forward_->Append());
  device_.Check(blocks_.status(), "copying blocks of the cache");
  const DeviceTokenNeed& room = workspace_.room();
  const auto fits = [&] { return need_.lists <= room.lists && need_.memory() <= room.buffers; };
  need_ = CountOnDevice(*forward_, ops_.compute());
  if (!fits()) throw DeviceError(device_.name() + ": a pass is too large");
  if (need_.panels || timed_ || std::ssize(wanted_) > kDeviceLogitRows) return absl::OkStatus();
  const ForwardNeed exact = std::exchange(need_, CountOnDevice(*forward_, ops_.compute(), true));
  recorded_ = fits();
  if (recorded_) {
    ops_.RoundPlans();
  } else {
    need_ = exact;
  }
  return absl::OkStatus();
}

void DeviceTokenPass::Stage() {
  kernels::cuda::StepUpload& upload = workspace_.upload();
  std::byte* pinned = nullptr;
  device_.Check(upload.Begin(&pinned), "a pass's lists");
  StagedLists lists(pinned, upload.device());
  if (recorded_) lists.NoteSizes(&sizes_);
  ops_.StageInto(lists);
  Carver carver(workspace_.buffers());
  ops_.UseMemory(carver, need_);
  forward_->Stage(ops_);
  device_.Check(upload.Send(device_.stream(), lists.used()), "a pass's lists");
  forward_->Take(ops_);
}

Rows DeviceTokenPass::RunRecorded() {
  const int64_t wanted = std::ssize(wanted_);
  sizes_.insert(sizes_.end(),
                {static_cast<int64_t>(need_.buffers), static_cast<int64_t>(need_.scratch),
                 std::ssize(forward_->runs()), wanted});
  const auto run = [&](Backend& backend) {
    forward_->Embed(backend);
    for (int layer = 0; layer < forward_->layers(); ++layer) forward_->Layer(backend, layer);
    return wanted > 0 ? forward_->Logits(backend, 0, wanted) : Rows();
  };
  std::exception_ptr thrown;  // A recording is ended before it goes on.
  const auto hand_over = [&]() -> kernels::cuda::Status {
    try {
      run(ops_);
      return 0;
    } catch (...) {
      thrown = std::current_exception();
      return 1;
    }
  };
  const kernels::cuda::Status status =
      workspace_.recordings().Run(device_.stream(), sizes_, hand_over);
  if (thrown) std::rethrow_exception(thrown);
  device_.Check(status, "a recorded pass");
  // The count tells where the logits lie; it runs nothing.
  DeviceBackend count(ops_.compute());
  return wanted > 0 ? forward_->Logits(count, 0, wanted) : Rows();
}

bool DeviceTokenPass::Advance() {
  const Device::Turn turn(device_);
  open_ = true;
  if (layer_ == 0) timer_.Run(&RunTimes::rest, [&] { Stage(); });
  if (recorded_) {
    const Rows logits = RunRecorded();
    if (!wanted_.empty()) BringRows(logits, 0, std::ssize(wanted_));
    results_.Take();
    return End();
  }
  if (layer_ == 0) timer_.Run(&RunTimes::rest, [&] { forward_->Embed(ops_); });
  ops_.set_timer(&timer_);
  forward_->Layer(ops_, layer_);
  ops_.set_timer(nullptr);
  if (++layer_ < forward_->layers()) return true;
  timer_.Run(&RunTimes::rest, [&] { BringResults(); });
  return End();
}

bool DeviceTokenPass::End() {
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
