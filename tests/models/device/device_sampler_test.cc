// Tokens chosen on a device that is the host, and on CUDA's first device where there is one,
// against those that the host chooses.
#include "models/generation/sampling/device_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "models/generation/sampling/log_probabilities.h"
#include "models/generation/sampling/sampler.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"

namespace longview::models {
namespace {

using kernels::cuda::ThreadOrder;
using kernels::cuda::testing::EmulatedPlugin;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const std::vector<std::unique_ptr<Device>>& Devices() {
  static const std::vector<std::unique_ptr<Device>> devices = [] {
    std::vector<std::unique_ptr<Device>> made;
    made.push_back(Device::OnHost(EmulatedPlugin(ThreadOrder::kRising)));
    made.push_back(Device::OnHost(EmulatedPlugin(ThreadOrder::kFalling)));
    absl::StatusOr<std::unique_ptr<Device>> cuda = Device::Open("cuda:0");
    if (cuda.ok()) {
      made.push_back(*std::move(cuda));
    } else {
      std::printf("not run on CUDA: %s\n", std::string(cuda.status().message()).c_str());
    }
    return made;
  }();
  return devices;
}

// A sequence that is to be continued.
struct Line {
  Line(std::vector<float> logits, GenerationSettings wanted, std::vector<int32_t> ids = {})
      : logits(std::move(logits)),
        settings(std::make_unique<GenerationSettings>(std::move(wanted))),
        processors(std::make_unique<LogitsProcessors>(*settings, ids)),
        history({}, static_cast<int>(this->logits.size()), processors->needs_distinct()) {
    for (const int32_t id : ids) history.Append(id);
  }

  std::vector<float> logits;
  std::unique_ptr<GenerationSettings> settings;
  std::unique_ptr<LogitsProcessors> processors;
  TokenHistory history;
  int sample = 0;
};

std::vector<ChosenToken> ChooseOn(const Device& device, std::span<const Line> lines) {
  const size_t vocab = lines[0].logits.size(), bytes = vocab * sizeof(float);
  const DeviceBlock logits(device, lines.size() * bytes);
  const PinnedBlock pinned(device, lines.size() * bytes);
  std::vector<SamplingRow> rows;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    std::memcpy(pinned.data() + i * bytes, line.logits.data(), bytes);
    rows.push_back({reinterpret_cast<const float*>(logits.data() + i * bytes),
                    {line.settings.get(), line.processors.get(), &line.history, line.sample}});
  }
  device.Check(device.api().copy_in(device.stream(), logits.data(), pinned.data(), logits.bytes()),
               "logits");
  DeviceSampler sampler(device, static_cast<int>(vocab), static_cast<int>(lines.size()));
  sampler.Hand(rows);
  device.Wait();
  return sampler.Take();
}

absl::StatusOr<int32_t> ChooseOnHost(const Line& line) {
  return Sampler(*line.settings, *line.processors).Choose(line.logits, line.history, line.sample);
}

// Both broken, or as near as sums in another order are.
void ExpectNear(float got, float want) {
  if (std::isfinite(want)) {
    EXPECT_NEAR(got, want, 1e-6 * (1 + std::abs(want)));
  } else {
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got << " for " << want;
  }
}

void ExpectTheHosts(const ChosenToken& got, const Line& line) {
  const absl::StatusOr<int32_t> want = ChooseOnHost(line);
  ASSERT_EQ(got.id.status(), want.status());
  if (!want.ok()) return;
  ASSERT_EQ(*got.id, *want);
  if (!line.settings->logprobs) return;
  const TokenReport report = ReportToken(line.logits, *want, *line.settings->logprobs, nullptr);
  ExpectNear(got.logprob, report.own.logprob);
  ASSERT_EQ(got.top.size(), report.top.size());
  for (size_t i = 0; i < report.top.size(); ++i) {
    EXPECT_EQ(got.top[i].id, report.top[i].id) << i;
    ExpectNear(got.top[i].logprob, report.top[i].logprob);
  }
}

// Takes one of a few values.
template <typename T>
T Any(std::mt19937& random, std::initializer_list<T> of) {
  return of.begin()[random() % of.size()];
}

std::vector<float> RandomLogits(std::mt19937& random, int vocab) {
  std::normal_distribution<float> normal(0, Any(random, {0.1f, 3.0f, 30.0f}));
  std::vector<float> logits(static_cast<size_t>(vocab));
  for (float& logit : logits) logit = normal(random);
  const auto any = [&]() -> float& { return logits[random() % logits.size()]; };
  switch (random() % 12) {
    case 0:  // Ties.
      for (float& logit : logits) logit = std::round(logit / 2);
      break;
    case 1:
      logits.assign(logits.size(), normal(random));
      break;
    case 2:  // Mostly impossible.
      for (float& logit : logits) logit = random() % 8 == 0 ? logit : -kInfinity;
      break;
    case 3:
      logits.assign(logits.size(), -kInfinity);
      break;
    case 4:
      any() = std::nanf("");
      break;
    case 5:
      any() = kInfinity;
      break;
    case 6:
      for (float& logit : logits) logit *= 1e37f;
      break;
    case 7:  // Both zeros.
      for (float& logit : logits) logit = random() % 2 == 0 ? 0.0f : -0.0f;
      break;
    default:
      break;
  }
  return logits;
}

GenerationSettings RandomSettings(std::mt19937& random, int vocab) {
  GenerationSettings settings;
  settings.sample = random() % 5 != 0;
  settings.temperature = Any(random, {1.0, 1.0, 0.3, 2.0, 1e-5, 50.0});
  settings.top_k = Any(random, {0, 0, 1, 5, 50, vocab, vocab + 7});
  settings.top_p = Any(random, {1.0, 1.0, 0.95, 0.5, 0.1, 1e-9});
  settings.min_p = Any(random, {0.0, 0.0, 0.05, 1.0});
  settings.typical_p = Any(random, {1.0, 1.0, 0.9307, 0.4711, 1e-9});
  settings.epsilon_cutoff = Any(random, {0.0, 0.0, 0.0, 0.0103, 0.2});
  settings.eta_cutoff = Any(random, {0.0, 0.0, 0.0, 0.0103, 0.2});
  settings.repetition_penalty = Any(random, {1.0, 1.3, 0.7});
  settings.min_new_tokens = Any(random, {0, 0, 5});
  const auto any_id = [&] {
    return static_cast<int32_t>(random() % static_cast<unsigned>(std::min(vocab, 9)));
  };
  settings.eos = {static_cast<int32_t>(random() % static_cast<unsigned>(vocab)), 0};
  settings.no_repeat_ngram = Any(random, {0, 0, 1, 2});
  settings.encoder_no_repeat_ngram = Any(random, {0, 0, 2});
  if (random() % 3 == 0) settings.bad_words = {{any_id()}, {any_id(), any_id()}};
  if (random() % 3 == 0) {
    settings.sequence_bias = {{{any_id()}, 1.5}, {{any_id(), any_id()}, -3.0}, {{any_id()}, 0.5}};
  }
  if (random() % 3 == 0) settings.suppress = {any_id(), any_id()};
  if (random() % 3 == 0) settings.begin_suppress = {any_id()};
  settings.seed = random();
  if (random() % 2 == 0) settings.logprobs = Any(random, {0, 1, 5, kMostLogprobs});
  return settings;
}

std::vector<Line> RandomLines(std::mt19937& random, int vocab, int count) {
  std::vector<Line> lines;
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> ids(random() % 12);
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random() % static_cast<unsigned>(std::min(vocab, 9)));
    }
    lines.emplace_back(RandomLogits(random, vocab), RandomSettings(random, vocab), ids).sample =
        static_cast<int>(random() % 3);
  }
  return lines;
}

TEST(DeviceSamplerTest, TokensAreTheHosts) {
  for (const auto& [vocab, count] :
       {std::pair{1, 100}, {2, 200}, {17, 400}, {255, 200}, {256, 50}, {257, 50}, {5003, 60}}) {
    std::mt19937 random(vocab);
    const std::vector<Line> lines = RandomLines(random, vocab, count);
    for (const auto& device : Devices()) {
      const std::vector<ChosenToken> tokens = ChooseOn(*device, lines);
      ASSERT_EQ(tokens.size(), lines.size());
      for (size_t i = 0; i < lines.size(); ++i) {
        SCOPED_TRACE(testing::Message() << device->name() << ", row " << i << " of " << vocab);
        ExpectTheHosts(tokens[i], lines[i]);
      }
    }
  }
}

TEST(DeviceSamplerTest, RowsDoNotDependOnBatchMates) {
  std::mt19937 random(7);
  const std::vector<Line> lines = RandomLines(random, 300, 40);
  for (const auto& device : Devices()) {
    const std::vector<ChosenToken> together = ChooseOn(*device, lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      SCOPED_TRACE(i);
      const ChosenToken alone = ChooseOn(*device, std::span(lines).subspan(i, 1))[0];
      EXPECT_EQ(alone.id, together[i].id);
      EXPECT_EQ(std::memcmp(&alone.logprob, &together[i].logprob, sizeof(float)), 0);
      ASSERT_EQ(alone.top.size(), together[i].top.size());
      for (size_t t = 0; t < alone.top.size(); ++t) {
        EXPECT_EQ(std::memcmp(&alone.top[t], &together[i].top[t], sizeof(alone.top[t])), 0);
      }
    }
  }
}

// Ids that any of 200 samples draws.
std::vector<int32_t> Drawn(const Device& device, const std::vector<float>& logits,
                           const GenerationSettings& settings) {
  std::vector<Line> lines;
  for (int sample = 0; sample < 200; ++sample) lines.emplace_back(logits, settings).sample = sample;
  std::vector<bool> drawn(logits.size());
  for (const ChosenToken& token : ChooseOn(device, lines)) drawn[*token.id] = true;
  std::vector<int32_t> ids;
  for (size_t id = 0; id < drawn.size(); ++id) {
    if (drawn[id]) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

TEST(DeviceSamplerTest, CutsKeepWhatIsEqualByTheHostsRules) {
  using Ids = std::vector<int32_t>;
  for (const auto& device : Devices()) {
    GenerationSettings settings;
    settings.sample = true;
    EXPECT_EQ(Drawn(*device, {2, 2, 2, 2}, settings), (Ids{0, 1, 2, 3}));
    settings.top_k = 2;
    EXPECT_EQ(Drawn(*device, {1, 2, 2, 3, 2}, settings), (Ids{1, 2, 3, 4}));
    settings.top_k = 0;
    settings.top_p = 0.5;
    EXPECT_EQ(Drawn(*device, {2, 2, 2, 2, 2, 2}, settings), (Ids{0, 1, 2}));
    settings.top_p = 0.51;
    EXPECT_EQ(Drawn(*device, {2, 2, 2, 2, 2, 2}, settings), (Ids{0, 1, 2, 3}));
    settings.top_p = 1;
    settings.min_p = 0.5;
    EXPECT_EQ(Drawn(*device, {0, 1, 0.5f, -kInfinity, 0.25f}, settings), (Ids{1, 2}));
    // The ones among 0.03, 0.33, 0.24, 0.24, 0.16 that are too likely or too rare go.
    settings.min_p = 0;
    settings.typical_p = 0.4;
    EXPECT_EQ(Drawn(*device, {-2, 0.4f, 0.1f, 0.1f, -0.3f}, settings), (Ids{2, 3}));
    settings.typical_p = 1;
    settings.epsilon_cutoff = 0.2;
    EXPECT_EQ(Drawn(*device, {-2, 0.4f, 0.1f, 0.1f, -0.3f}, settings), (Ids{1, 2, 3}));
    settings.epsilon_cutoff = 0.9;
    EXPECT_EQ(Drawn(*device, {-2, 0.4f, 0.1f, 0.1f, -0.3f}, settings), (Ids{1}));
  }
}

TEST(DeviceSamplerTest, PenaltiesCountEveryIdOnceAndEndsMayBeEarly) {
  GenerationSettings settings;
  settings.repetition_penalty = 2;
  settings.min_new_tokens = 4;
  settings.eos = {3};
  std::vector<Line> lines;
  lines.emplace_back(std::vector<float>{4.5f, 3, 2.5f, 9}, settings, std::vector<int32_t>{0, 0, 1});
  lines.emplace_back(std::vector<float>{4.5f, 3, 2.5f, 9}, settings,
                     std::vector<int32_t>{0, 0, 1, 1});
  for (const auto& device : Devices()) {
    const std::vector<ChosenToken> tokens = ChooseOn(*device, lines);
    EXPECT_EQ(*tokens[0].id, 2);
    EXPECT_EQ(*tokens[1].id, 3);
  }
}

TEST(DeviceSamplerTest, TakesWhatItKnows) {
  GenerationSettings settings;
  settings.sample = true;
  settings.top_k = 5;
  settings.repetition_penalty = 1.1;
  settings.min_length = 3;
  EXPECT_TRUE(DeviceSampler::Takes(settings));
  const auto takes_with = [&](auto change) {
    GenerationSettings other = settings;
    change(other);
    return DeviceSampler::Takes(other);
  };
  EXPECT_TRUE(takes_with([](GenerationSettings& s) { s.typical_p = 0.9; }));
  EXPECT_TRUE(takes_with([](GenerationSettings& s) { s.epsilon_cutoff = s.eta_cutoff = 0.1; }));
  EXPECT_TRUE(takes_with([](GenerationSettings& s) { s.no_repeat_ngram = 3; }));
  EXPECT_TRUE(takes_with([](GenerationSettings& s) { s.bad_words = {{1, 2}}; }));
  EXPECT_TRUE(takes_with([](GenerationSettings& s) { s.suppress = s.begin_suppress = {1}; }));
  EXPECT_FALSE(takes_with([](GenerationSettings& s) { s.forced_eos = {1}; }));
  EXPECT_TRUE(takes_with([](GenerationSettings& s) { s.sequence_bias = {{{1}, 2.0}}; }));
  EXPECT_FALSE(takes_with([](GenerationSettings& s) { s.encoder_repetition_penalty = 2; }));
  EXPECT_FALSE(takes_with([](GenerationSettings& s) { s.beams = 2; }));
  EXPECT_FALSE(takes_with([](GenerationSettings& s) { s.remove_invalid = true; }));
}

}  // namespace
}  // namespace longview::models
