#include "models/transformer_ls/device_pass.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/transformer_ls/cost.h"

namespace longview::models {
namespace {

using kernels::CacheStep;

// Of decoding, and of prefill beside it.
constexpr int64_t kPinnedRows = kDevicePassRuns + kDeviceLogitRows;

kernels::cuda::DecodeLimits LimitsOf(int max_tokens) { return {kDevicePassRuns, max_tokens}; }

// Takes the runs that decode out of `runs`.
std::vector<TokenRun> TakeDecoding(std::vector<TokenRun>& runs) {
  std::vector<TokenRun> decoding;
  std::ranges::copy_if(runs, std::back_inserter(decoding),
                       [](const TokenRun& run) { return run.group == CacheStep::kDecode; });
  std::erase_if(runs, [](const TokenRun& run) { return run.group == CacheStep::kDecode; });
  return decoding;
}

}  // namespace

double DeviceLsWorkspace::DeviceBytes(const LsLmConfig& config, Compute compute,
                                      const kernels::CacheShape& cache, int max_tokens) {
  const DevicePassBytes pass = MostPassBytes(config, compute, max_tokens);
  const uint64_t decode = kernels::cuda::DecodeRunner::MemoryBytes(DecodeShapeOf(config, compute),
                                                                   cache, LimitsOf(max_tokens));
  return static_cast<double>(pass.lists + pass.buffers + decode +
                             DeviceSampler::DeviceBytes(config.vocab, kDevicePassRuns));
}

DeviceLsWorkspace::DeviceLsWorkspace(const DeviceLsContext& context,
                                     const kernels::CacheShape& cache, int max_tokens)
    : shape_(DecodeShapeOf(*context.config, context.compute)),
      weights_(DecodeWeightsOf(*context.weights)),
      room_(MostPassBytes(*context.config, context.compute, max_tokens)),
      device_(*context.device, room_.buffers),
      pinned_(*context.device, static_cast<size_t>(kPinnedRows) *
                                   static_cast<size_t>(context.config->vocab) * sizeof(float)),
      upload_(context.device->api(), context.device->index()),
      runner_(context.device->api(), context.device->index(), context.device->stream()),
      sampler_(*context.device, context.config->vocab, kDevicePassRuns) {
  context.device->Check(upload_.Reserve(room_.lists), "lists of prefill");
  context.device->Check(runner_.Reserve(shape_, cache, LimitsOf(max_tokens)), "decode steps");
}

DeviceLsPass::DeviceLsPass(const DeviceLsContext& context,
                           const kernels::cuda::DeviceBlocks& blocks, DeviceLsWorkspace& workspace,
                           std::vector<TokenRun> runs, EncoderTimes* times)
    : context_(context),
      device_(*context.device),
      blocks_(blocks),
      workspace_(workspace),
      times_(times),
      decoding_(TakeDecoding(runs)),
      layout_(LayOutPass(*context.config, std::move(runs), kernels::cuda::kDeviceTileRows)),
      step_(context.cache),
      results_(*context.device, workspace.sampler(), workspace.pinned_logits(),
               context.config->vocab) {}

DeviceLsPass::~DeviceLsPass() {
  // Of what was given up the device may still read what the workspace's next user writes.
  if (open_) (void)device_.api().synchronize(device_.stream());
}

absl::Status DeviceLsPass::Begin() {
  // Decoding first, as the cache wants it.
  absl::Status status = AppendRuns(decoding_, step_);
  if (status.ok()) status = AppendRuns(layout_.runs, step_);
  if (!status.ok()) return status;
  device_.Check(blocks_.status(), "copying blocks of the cache");
  if (layout_.rows == 0) return status;
  const CarvedPass carved =
      CarvePass(*context_.config, context_.compute, layout_, workspace_.buffers());
  if (!carved.bytes.Fits(workspace_.room())) {
    throw DeviceError(device_.name() + ": a pass is too large");
  }
  buffers_ = carved.buffers;
  return status;
}

template <typename Body>
void DeviceLsPass::Timed(double EncoderTimes::*sum, Body&& body) {
  if (times_ == nullptr) return body();
  const Stopwatch watch(&(times_->*sum));
  body();
  device_.Wait();
}

void DeviceLsPass::Decode() {
  std::vector<kernels::cuda::DecodeToken> tokens;
  for (const TokenRun& run : decoding_) tokens.push_back({run.ids[0], &run.sequence->cache()});
  EncoderTimes spent;
  {
    const Stopwatch watch(&spent.linears);
    kernels::cuda::DecodeStep step(workspace_.shape(), workspace_.weights(), *context_.cache, step_,
                                   tokens);
    device_.Check(workspace_.runner().Run(step, &decoded_), "a decode step");
    if (times_ != nullptr) device_.Wait();
  }
  if (times_ == nullptr) return;
  double attention = 0;
  for (const TokenRun& run : decoding_) attention += LsAttentionWork(*context_.config, run.start);
  const double share = attention / (attention + LsLinearWork(*context_.config));
  times_->attention += share * spent.linears;
  times_->rest += (1 - share) * spent.linears;
}

void DeviceLsPass::BeginPrefill() {
  kernels::cuda::StepUpload& upload = workspace_.upload();
  std::byte* pinned = nullptr;
  device_.Check(upload.Begin(&pinned), "a pass's lists");
  StagedLists lists(pinned, upload.device());
  lists_ = StageLists(*context_.config, layout_, context_.cache, &step_, buffers_.states, lists);
  device_.Check(upload.Send(device_.stream(), lists.used()), "a pass's lists");
  DevicePrefill(context_, layout_, lists_, buffers_).Embed();
}

// Of the last layer only what somebody reads: windows and sums, and rows if any has logits.
void DeviceLsPass::RunLayer() {
  const DevicePrefill prefill(context_, layout_, lists_, buffers_);
  const bool ends = layer_ + 1 == context_.config->layers && layout_.wanted == 0;
  Timed(&EncoderTimes::linears, [&] { prefill.Project(layer_); });
  Timed(&EncoderTimes::attention, [&] { prefill.Attend(layer_, ends); });
  if (!ends) Timed(&EncoderTimes::linears, [&] { prefill.Finish(layer_); });
}

void DeviceLsPass::BringPrefilled() {
  const int64_t vocab = context_.config->vocab;
  std::vector<float*> to;
  for (const TokenRun& run : layout_.runs) {
    for (int64_t i = 0; i < run.wanted; ++i) to.push_back(run.logits + i * vocab);
  }
  const DevicePrefill prefill(context_, layout_, lists_, buffers_);
  for (int64_t first = 0; first < layout_.wanted; first += kDeviceLogitRows) {
    if (first > 0) results_.Take();
    const int64_t count = std::min(kDeviceLogitRows, layout_.wanted - first);
    prefill.Logits(first, count);
    for (int64_t i = 0; i < count; ++i) {
      results_.Bring(buffers_.logits + i * vocab, to[static_cast<size_t>(first + i)]);
    }
  }
}

void DeviceLsPass::BringDecoded() {
  for (size_t i = 0; i < decoding_.size(); ++i) {
    if (decoding_[i].wanted == 0) continue;
    const float* const logits = decoded_ + static_cast<int64_t>(i) * context_.config->vocab;
    results_.BringOrChoose(logits, decoding_[i]);
  }
  results_.Choose();
}

bool DeviceLsPass::Advance() {
  const Device::Turn turn(device_);
  const bool reads = layout_.rows > 0;
  open_ = true;
  if (layer_ == 0) {
    if (!decoding_.empty()) Decode();
    if (reads) Timed(&EncoderTimes::rest, [&] { BeginPrefill(); });
  }
  if (reads) RunLayer();
  if (reads && ++layer_ < context_.config->layers) return true;
  if (reads) Timed(&EncoderTimes::rest, [&] { BringPrefilled(); });
  BringDecoded();
  results_.Take();
  open_ = false;
  step_.End();
  return false;
}

}  // namespace longview::models
