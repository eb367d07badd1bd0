// Transformer-LS on a device: golden cases, tokens chosen where their logits are, admission; on a
// device that is the host, and on CUDA's first device where there is one. Batches and cuts:
// tests/models/generation/decoder_batch_invariance_test.cc.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/generation/model/family.h"
#include "models/generation/model/generator_loading.h"
#include "models/generation/sampling/sampler.h"
#include "models/transformer_ls/model.h"
#include "models/transformer_ls/pass.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/golden/golden_case.h"
#include "tests/models/transformer_ls/device_case.h"
#include "tests/models/transformer_ls/golden_checks.h"
#include "tests/models/transformer_ls/golden_names.h"

namespace longview::models {
namespace {

using kernels::cuda::PluginApi;
using kernels::cuda::testing::EmulatedPlugin;

// Logits have a standard deviation of 2.
const std::pair<std::string, double> kRoundedBounds[] = {{"bf16", 0.6}, {"fp16", 0.1}};

class DeviceLsGolden : public testing::TestWithParam<std::string> {
 protected:
  DeviceLsGolden() : golden_(GetParam(), "transformer_ls_lm") {}

  const GoldenCase golden_;
};

TEST_P(DeviceLsGolden, Fp32) {
  for (const DevicePlace& place : PlacesOfDevices()) {
    SCOPED_TRACE(place.name);
    DeviceLsCase model(golden_.directory(), "fp32", place.open());
    LsGoldenChecks checks(golden_, golden_.tolerance("logits"));
    checks.WholeTexts(model);
    checks.StepByStep(model);
    checks.Forks(model);
    checks.Continuations(model);
    EXPECT_GT(checks.compared(), 0);
    std::printf("%-32s fp32 on %s: largest error %.2e\n", GetParam().c_str(), place.name.c_str(),
                checks.largest());
  }
}

TEST_P(DeviceLsGolden, Rounded) {
  for (const DevicePlace& place : PlacesOfDevices()) {
    for (const auto& [dtype, bound] : kRoundedBounds) {
      SCOPED_TRACE(place.name + ", " + dtype);
      DeviceLsCase model(golden_.directory(), dtype, place.open());
      LsGoldenChecks checks(golden_, bound);
      checks.WholeTexts(model);
      checks.StepByStep(model);
      checks.Forks(model);
      std::printf("%-32s %s on %s: largest error %.2e\n", GetParam().c_str(), dtype.c_str(),
                  place.name.c_str(), checks.largest());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceLsGolden, testing::ValuesIn(LsGoldenNames()),
                         [](const auto& info) { return info.param; });

std::string SmallDirectory() {
  return GoldenCase("paper_dh16_r1_l4_w8", "transformer_ls_lm").directory();
}

// How the tokens of a step are chosen, one sequence each.
class Choices {
 public:
  explicit Choices(int vocab) : vocab_(vocab) {}

  void Add(const GenerationSettings& settings) {
    Line& line = *lines_.emplace_back(std::make_unique<Line>());
    line.settings = settings;
    line.processors = std::make_unique<LogitsProcessors>(line.settings, std::span<const int32_t>());
    line.history = std::make_unique<TokenHistory>(std::vector<int32_t>{1, 2, 3}, vocab_,
                                                  line.processors->needs_distinct());
    line.choice = {&line.settings, line.processors.get(), line.history.get(),
                   static_cast<int>(lines_.size())};
  }

  size_t size() const { return lines_.size(); }
  const TokenChoice& operator[](size_t i) const { return lines_[i]->choice; }

 private:
  struct Line {
    GenerationSettings settings;
    std::unique_ptr<LogitsProcessors> processors;
    std::unique_ptr<TokenHistory> history;
    TokenChoice choice;
  };
  const int vocab_;
  std::vector<std::unique_ptr<Line>> lines_;
};

Choices SomeChoices(int vocab) {
  Choices choices(vocab);
  choices.Add({});
  for (uint32_t seed = 0; seed < 8; ++seed) {
    GenerationSettings settings;
    settings.sample = true;
    settings.seed = seed;
    settings.temperature = 0.9;
    settings.top_k = seed % 2 == 0 ? 20 : 0;
    settings.repetition_penalty = 1.3;
    settings.logprobs = 3;
    choices.Add(settings);
  }
  GenerationSettings banned;
  banned.suppress = {5};
  banned.no_repeat_ngram = 2;
  choices.Add(banned);
  GenerationSettings mended;  // The host's business.
  mended.remove_invalid = true;
  choices.Add(mended);
  return choices;
}

// Every sequence reads another token; with choices, and without.
TEST(DeviceLsDecoder, TokensAreChosenAsTheHostChoosesFromTheSameLogits) {
  DeviceLsCase model(SmallDirectory(), "fp32", Device::OnHost(EmulatedPlugin()));
  const int vocab = model.decoder().vocab_size();
  const Choices choices = SomeChoices(vocab);
  const std::vector<int32_t> text = model.Text(48, 1);
  std::vector<std::unique_ptr<DecoderSequence>> chosen, read;
  std::vector<DecoderFeed> with, without;
  for (size_t i = 0; i < choices.size(); ++i) {
    chosen.push_back(model.New());
    model.Read(*chosen.back(), std::span(text).first(30 + i % 3), WantedLogits::kNone);
    read.push_back(chosen.back()->Fork());
    DecoderFeed feed;
    feed.tokens = std::span(text).subspan(30 + i, 1);
    feed.phase = DecoderPhase::kDecode;
    feed.sequence = read.back().get();
    without.push_back(feed);
    feed.sequence = chosen.back().get();
    feed.choice = &choices[i];
    with.push_back(feed);
  }
  const std::vector<std::vector<float>> logits = RunStep(model.decoder(), without);
  const auto step = model.decoder().Begin(with);
  while (step->Advance()) {
  }
  ASSERT_TRUE(step->status().ok()) << step->status();
  for (size_t i = 0; i < choices.size(); ++i) {
    SCOPED_TRACE(i);
    const TokenChoice& choice = choices[i];
    const absl::StatusOr<int32_t> want = Sampler(*choice.settings, *choice.processors)
                                             .Choose(logits[i], *choice.history, choice.sample);
    ASSERT_TRUE(want.ok()) << want.status();
    const ChosenToken* const got = step->Chosen(static_cast<int>(i));
    if (i + 1 == choices.size()) {
      EXPECT_EQ(got, nullptr);
      const std::span<const float> row = step->Logits(static_cast<int>(i));
      EXPECT_EQ(std::vector<float>(row.begin(), row.end()), logits[i]);
      continue;
    }
    ASSERT_NE(got, nullptr);
    EXPECT_TRUE(step->Logits(static_cast<int>(i)).empty());
    ASSERT_TRUE(got->id.ok()) << got->id.status();
    EXPECT_EQ(*got->id, *want);
    EXPECT_EQ(got->top.size(), choice.settings->logprobs ? 3u : 0u);
  }
}

int waits = 0;

// Counts how often the host waits for the device.
const PluginApi& CountingPlugin() {
  static const PluginApi api = [] {
    PluginApi counting = EmulatedPlugin();
    counting.synchronize = [](kernels::cuda::Stream*) -> kernels::cuda::Status {
      ++waits;
      return 0;
    };
    return counting;
  }();
  return api;
}

TEST(DeviceLsDecoder, TheHostWaitsOncePerPassForWhatIsReadAndElseNotAtAll) {
  DeviceLsCase model(SmallDirectory(), "fp32", Device::OnHost(CountingPlugin()));
  const std::vector<int32_t> text = model.Text(200, 1);
  std::vector<std::unique_ptr<DecoderSequence>> sequences;
  for (int i = 0; i < 3; ++i) {
    sequences.push_back(model.New());
    waits = 0;
    // Two passes: a chunk, and what begins inside a block.
    model.Read(*sequences.back(), std::span(text).first(100), WantedLogits::kNone);
    model.Read(*sequences.back(), std::span(text).subspan(100, 50), WantedLogits::kNone);
    EXPECT_EQ(waits, 0);
  }
  waits = 0;
  model.Step(*sequences[0], std::span(text).first(1));
  EXPECT_EQ(waits, 1);
  // A token chosen on the device, one chosen by the host, and a prompt's last logits.
  const Choices choices = SomeChoices(model.decoder().vocab_size());
  std::vector<DecoderFeed> feeds(3);
  for (size_t i = 0; i < feeds.size(); ++i) {
    feeds[i].sequence = sequences[i].get();
    feeds[i].tokens = std::span(text).first(i < 2 ? 1 : 20);
    feeds[i].phase = i < 2 ? DecoderPhase::kDecode : DecoderPhase::kPrefill;
  }
  feeds[0].choice = &choices[0];
  feeds[1].choice = &choices[choices.size() - 1];
  waits = 0;
  RunStep(model.decoder(), feeds);
  EXPECT_EQ(waits, 1);
}

int launches = 0;

// Counts recordings that are launched.
const PluginApi& LaunchingPlugin() {
  static const PluginApi api = [] {
    PluginApi counting = EmulatedPlugin();
    counting.launch_graph = [](kernels::cuda::Stream* stream, kernels::cuda::Graph* graph) {
      ++launches;
      return EmulatedPlugin().launch_graph(stream, graph);
    };
    return counting;
  }();
  return api;
}

// Steps of like sizes: up to the end of a segment, where one is different.
TEST(DeviceLsDecoder, StepsAreRecordedAndLaunchedWithTheSameBits) {
  DeviceLsCase model(SmallDirectory(), "fp32", Device::OnHost(LaunchingPlugin()));
  const std::vector<int32_t> text = model.Text(64, 1);
  const auto prompt = std::span(text).first(20);
  launches = 0;
  const auto first = model.New(), again = model.New();
  model.Read(*first, prompt, WantedLogits::kNone);
  EXPECT_EQ(launches, 0);
  // The first steps of their sizes are handed over as they are.
  const std::vector<float> logits = model.Step(*first, std::span(text).subspan(20, 40));
  EXPECT_GE(launches, 30);
  EXPECT_LT(launches, 40);
  launches = 0;
  model.Read(*again, prompt, WantedLogits::kNone);
  EXPECT_EQ(model.Step(*again, std::span(text).subspan(20, 40)), logits);
  EXPECT_EQ(launches, 40);
}

LoadOptions OptionsOf(double cache_bytes) {
  LoadOptions options;
  options.dtype = "fp32";
  options.cache_bytes = cache_bytes;
  return options;
}

absl::StatusOr<std::unique_ptr<Model>> LoadModelOn(std::unique_ptr<Device> device,
                                                   const std::string& directory) {
  return LoadGeneratorAt(std::move(device), OrDie(OpenModelDirectory(directory)),
                         OptionsOf(16 << 20), MakeTransformerLs);
}

std::vector<Piece> Generate(Model& model, const Request& request) {
  const auto item = OrDie(model.Prepare(request));
  const auto generation = OrDie(model.Start(*item));
  while (!generation->done()) {
    const StepGrant grant{generation.get(), generation->need().prefill};
    const auto step = model.BeginStep({&grant, 1});
    while (step->Advance()) {
    }
  }
  return OrDie(generation->Take()).sequences;
}

// The whole way of a request: two samples with log-probabilities, and a greedy one.
TEST(DeviceLsModel, AnswersAreTheCpus) {
  const GoldenCase golden("paper_dh16_r1_l4_w8", "transformer_ls_lm");
  const auto cpu = OrDie(LoadModel(golden.directory(), OptionsOf(16 << 20)));
  const auto device = OrDie(LoadModelOn(Device::OnHost(EmulatedPlugin()), golden.directory()));
  ASSERT_TRUE(device->WarmUp().ok());
  EXPECT_EQ(device->info().device, "host");
  EXPECT_EQ(device->info().dtype, "fp32");
  EXPECT_GT(device->info().memory_bytes, 0);
  for (const bool sample : {false, true}) {
    Request request;
    request.task = Task::kTextGeneration;
    request.text = "def main(arguments):";
    request.generation.emplace();
    request.generation->max_new_tokens = 24;
    request.generation->ignore_eos = true;
    request.generation->logprobs = 2;
    request.generation->do_sample = sample;
    request.generation->seed = 7;
    if (sample) request.generation->num_return_sequences = 2;
    const std::vector<Piece> want = Generate(*cpu, request), got = Generate(*device, request);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].token_ids, want[i].token_ids);
      EXPECT_EQ(got[i].text, want[i].text);
      ASSERT_EQ(got[i].logprobs.size(), want[i].logprobs.size());
      for (size_t t = 0; t < want[i].logprobs.size(); ++t) {
        EXPECT_NEAR(got[i].logprobs[t].logprob, want[i].logprobs[t].logprob, 1e-4);
        EXPECT_EQ(got[i].top[t].size(), want[i].top[t].size());
      }
    }
  }
  EXPECT_EQ(device->cache().used, 0);
}

TEST(DeviceLsModel, WhatDoesNotFitIsRefusedAtLoadWithNeedAndLimit) {
  const std::string directory = SmallDirectory();
  // The bytes of an allowance that a model fits into: doubled until one does, then halved.
  uint64_t most = uint64_t{1} << 20, least = 0;
  const auto fits = [&](uint64_t bytes) {
    const PluginApi api = EmulatedPluginWith(bytes);
    return LoadOnDevice(directory, "fp32", Device::OnHost(api)).ok();
  };
  while (!fits(most)) least = std::exchange(most, 2 * most);
  while (most - least > 1) (fits((least + most) / 2) ? most : least) = (least + most) / 2;
  const PluginApi tighter = EmulatedPluginWith(least);
  const auto refused = LoadOnDevice(directory, "fp32", Device::OnHost(tighter));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  for (const std::string part :
       {"on host: needs ", "weights", "workspace", "a cache of 16777216 bytes", "are free"}) {
    EXPECT_NE(std::string(refused.status().message()).find(part), std::string::npos) << part;
  }
}

// Passes of up to so many tokens and runs anywhere in a text; none crosses a multiple of `block`.
std::vector<TokenRun> RandomRuns(std::mt19937& random, const std::vector<int32_t>& ids,
                                 int max_tokens, int block) {
  using kernels::CacheStep;
  std::vector<TokenRun> runs;
  const auto start_of = [&] {
    if (random() % 3 == 0) return std::max(0, max_tokens - 1 - static_cast<int>(random() % 200));
    return static_cast<int>(random() % static_cast<uint32_t>(max_tokens));
  };
  const auto add = [&](CacheStep::Group group, int64_t start, int64_t tokens) {
    TokenRun& run = runs.emplace_back();
    run.group = group;
    run.start = start;
    run.ids = std::span(ids).first(static_cast<size_t>(tokens));
    run.wanted = random() % 2 == 0 ? tokens : 1;
  };
  int64_t left = kDevicePassTokens;
  for (int i = static_cast<int>(random() % kDevicePassRuns); i >= 0 && left > 0; --i) {
    const bool chunk = random() % 2 == 0;
    int64_t start = start_of();
    if (chunk) start = start / kernels::kBlockSlots * kernels::kBlockSlots;
    int64_t most = std::min(left, max_tokens - start);
    if (!chunk) most = std::min(most, kernels::kBlockSlots - start % kernels::kBlockSlots);
    if (block > 0) most = std::min(most, block - start % block);
    const int64_t tokens = random() % 2 == 0 ? most : 1 + static_cast<int64_t>(random()) % most;
    add(chunk ? CacheStep::kPrefill : CacheStep::kResume, start, tokens);
    left -= tokens;
  }
  for (int i = static_cast<int>(random() % kDevicePassRuns); i > 0; --i) {
    add(CacheStep::kDecode, start_of(), 1);
  }
  return runs;
}

// Weights that have sizes.
LsLmWeights SizesOf(const LsLmConfig& config) {
  const auto linear = [](int64_t out, int64_t in) {
    Weight weight;
    weight.in = in;
    weight.out = out;
    return weight;
  };
  LsLmWeights weights;
  LsLmLayer& layer = weights.layers.emplace_back();
  layer.project = linear(3 * config.width + config.columns(), config.width);
  layer.out = linear(config.width, config.width);
  layer.expand = linear(config.intermediate, config.width);
  layer.contract = linear(config.width, config.intermediate);
  weights.logits = linear(config.vocab, config.width);
  return weights;
}

TEST(DeviceLsPass, NoPassWithinTheLimitsNeedsMoreThanTheMost) {
  LsLmConfig config;
  config.vocab = 300;
  config.width = 64;
  config.heads = 2;
  config.intermediate = 128;
  config.layers = 1;
  const std::vector<int32_t> ids(static_cast<size_t>(kDevicePassTokens));
  std::mt19937 random(5);
  using kernels::SchedulePattern;
  for (const SchedulePattern& pattern :
       {SchedulePattern{2, 8, 4, 1}, SchedulePattern{2, 700, 16, 1}, SchedulePattern{2, 24, 16, 4},
        SchedulePattern{2, 64, 1, 1}, SchedulePattern{2, 64, 16, 1, 256, 32768, true},
        SchedulePattern{2, 200, 4, 3, 48, 200, true}, SchedulePattern{2, 24, 8, 2, 1000, 64, true},
        SchedulePattern{2, 8, 1, 2, 4, 3000, false}}) {
    config.window = pattern.window;
    config.segment = pattern.segment;
    config.rank = pattern.rank;
    config.schedule = pattern.paper() ? LsSchedule::kPaper : LsSchedule::kBlocks;
    config.block = pattern.block;
    config.memory = pattern.memory;
    config.zero_memory = pattern.zero_memory;
    const LsLmWeights weights = SizesOf(config);
    const Checkpoint checkpoint = OrDie(Checkpoint::Open(SmallDirectory()));
    const LsLm model(config, checkpoint, "test", 0);
    LsContext context;
    context.config = &config;
    context.weights = &weights;
    context.few_rows = context.on_device = true;
    context.tile_rows = kernels::cuda::kDeviceTileRows;
    const auto make = [&](std::vector<TokenRun> runs) {
      return std::make_unique<LsPass>(context, std::move(runs), kDeviceLogitRows);
    };
    for (const int max_tokens : {100, 3000, 1 << 16}) {
      const DeviceTokenNeed most = MostTokenNeed(Compute::kFp32, TextsOf(model, max_tokens), make);
      for (int i = 0; i < 40; ++i) {
        LsPass pass(context, RandomRuns(random, ids, max_tokens, config.block), kDeviceLogitRows);
        DeviceBackend count(Compute::kFp32);
        CountForward(pass, kDeviceLogitRows, count);
        const ForwardNeed need = count.need();
        ASSERT_TRUE(need.lists <= most.lists && need.memory() <= most.buffers)
            << pattern.window << " " << pattern.segment << " " << pattern.block << " " << max_tokens
            << ": " << need.lists << " of " << most.lists << ", " << need.memory() << " of "
            << most.buffers;
      }
    }
  }
}

}  // namespace
}  // namespace longview::models
