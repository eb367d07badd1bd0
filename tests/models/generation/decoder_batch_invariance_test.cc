// Every family of decoders over kernels/cache: equal bits however a prompt is cut, whoever shares
// the steps, whether a state was made afresh, forked or found.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/parallel.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/cst/cst_case.h"
#include "tests/models/generation/decoder_reader.h"
#include "tests/models/golden/golden_case.h"
#include "tests/models/transformer_ls/device_case.h"
#include "tests/models/transformer_ls/ls_case.h"
#include "tests/support/cpu_types.h"

namespace longview::models {
namespace {

struct Setting {
  const char* family;
  const char* golden;
  const char* dtype;
  bool device = false;  // On one that is the host.
};

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.family << " " << setting.golden << " " << setting.dtype
       << (setting.device ? " on a device" : "");
}

std::unique_ptr<DecoderReader> Load(const Setting& setting) {
  const std::string directory = GoldenCase(setting.golden, setting.family).directory();
  if (std::string(setting.family) == "cst") {
    std::unique_ptr<Device> device;
    if (setting.device) device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
    return std::make_unique<CstCase>(directory, setting.dtype, 64 << 20, 1 << 14,
                                     std::move(device));
  }
  if (setting.device) {
    return std::make_unique<DeviceLsCase>(directory, setting.dtype,
                                          Device::OnHost(kernels::cuda::testing::EmulatedPlugin()));
  }
  return std::make_unique<LsCase>(directory, setting.dtype);
}

class DecoderBatchInvariance : public testing::TestWithParam<Setting> {
 protected:
  DecoderBatchInvariance() : reader_(Load(GetParam())), model_(*reader_) {}

  const std::unique_ptr<DecoderReader> reader_;
  DecoderReader& model_;
};

TEST_P(DecoderBatchInvariance, PrefillCutAnywhereGivesTheSameBits) {
  const int alignment = model_.decoder().prefill_alignment();
  // Multiples of the alignment, and any other length, which documents that grow have.
  ExpectCutsChangeNoBit(model_, 333, {alignment, 2 * alignment, 1, 50, 100});
}

// A step may run on one thread or on all: its bits are the same.
TEST_P(DecoderBatchInvariance, OneThreadAndAll) {
  SetComputeThreads(3);
  const std::unique_ptr<DecoderReader> reader = Load(GetParam());
  const std::vector<int32_t> text = reader->Text(150, 1), tail = reader->Text(4, 2);
  const auto read = [&](int threads) {
    const TeamScope team(threads);
    const auto sequence = reader->New();
    std::vector<float> logits = reader->Read(*sequence, text);
    const std::vector<float> decoded = reader->Step(*sequence, tail);
    logits.insert(logits.end(), decoded.begin(), decoded.end());
    return logits;
  };
  EXPECT_EQ(read(1), read(3));
  SetComputeThreads(1);
}

TEST_P(DecoderBatchInvariance, AForkReadsLikeAFreshSequence) {
  for (const int shared : {5, 64, 100, 200}) ExpectForkReadsLikeFresh(model_, shared, 77, 60);
}

TEST_P(DecoderBatchInvariance, AFoundPrefixReadsLikeAFreshOne) {
  const std::vector<int32_t> prompt = model_.Text(300, 6), tail = model_.Text(20, 7);
  std::vector<float> want, next;
  {
    const auto first = model_.Open(prompt);
    ASSERT_EQ(first->tokens(), 0);
    want = model_.Read(*first, prompt);
    first->CachePrefix(/*space=*/0);
    next = model_.Step(*first, tail);
  }
  const auto found = model_.Open(prompt);
  const int alignment = model_.decoder().prefill_alignment();
  ASSERT_EQ(found->tokens(), 299 / alignment * alignment);
  const std::vector<float> got =
      model_.Read(*found, std::span(prompt).subspan(static_cast<size_t>(found->tokens())));
  EXPECT_EQ(got, std::vector<float>(want.end() - static_cast<int64_t>(got.size()), want.end()));
  EXPECT_EQ(model_.Step(*found, tail), next);
}

// A sequence of a crowd: a prompt in random chunks, then greedy tokens.
struct Member {
  std::vector<int32_t> prompt;
  std::unique_ptr<DecoderSequence> sequence;
  size_t read = 0;
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // Logits of every token it chose from.
  int32_t next = 0;
  size_t chunk = 0;

  DecoderFeed Feed(std::mt19937& random, int alignment) {
    if (read < prompt.size()) {
      chunk = std::min(prompt.size() - read, (1 + random() % 3) * static_cast<size_t>(alignment));
      return {sequence.get(), std::span(prompt).subspan(read, chunk), DecoderPhase::kPrefill,
              WantedLogits::kLast};
    }
    chunk = 0;
    next = tokens.back();
    return {sequence.get(), {&next, 1}, DecoderPhase::kDecode, WantedLogits::kLast};
  }

  void Take(const std::vector<float>& row) {
    read += chunk;
    if (read < prompt.size()) return;
    logits.insert(logits.end(), row.begin(), row.end());
    tokens.push_back(Greedy(row));
  }
};

TEST_P(DecoderBatchInvariance, AloneAndAmongOthersThatComeAndGo) {
  constexpr size_t kTokens = 24;
  const int alignment = model_.decoder().prefill_alignment();
  std::mt19937 random(8);
  const auto join = [&](uint32_t seed) {
    Member member;
    member.prompt = model_.Text(1 + static_cast<int>(seed * 37 % 200), seed);
    member.sequence = model_.New();
    return member;
  };
  Member alone = join(100);
  alone.prompt = model_.Text(150, 100);
  while (alone.tokens.size() < kTokens) {
    const DecoderFeed feed = alone.Feed(random, alignment);
    alone.Take(RunStep(model_.decoder(), {&feed, 1})[0]);
  }

  Member watched = join(100);
  watched.prompt = alone.prompt;
  std::vector<Member> crowd;
  uint32_t joined = 0;
  while (watched.tokens.size() < kTokens) {
    while (crowd.size() < 32 && random() % 3 != 0) crowd.push_back(join(++joined));
    if (!crowd.empty() && random() % 2 == 0) crowd.erase(crowd.begin() + random() % crowd.size());
    std::vector<Member*> members;
    for (Member& member : crowd) {
      if (random() % 4 != 0) members.push_back(&member);
    }
    members.insert(members.begin() + random() % (members.size() + 1), &watched);
    std::vector<DecoderFeed> feeds;
    for (Member* member : members) feeds.push_back(member->Feed(random, alignment));
    const auto logits = RunStep(model_.decoder(), feeds);
    for (size_t i = 0; i < members.size(); ++i) members[i]->Take(logits[i]);
  }
  EXPECT_GE(joined, 20u);
  EXPECT_EQ(watched.tokens, alone.tokens);
  EXPECT_EQ(watched.logits, alone.logits);
}

constexpr Setting kSettings[] = {
    {"transformer_ls_lm", "paper_dh32_r2_l16_w64", "fp32"},
    {"transformer_ls_lm", "paper_dh32_r2_l16_w64", "bf16"},
    {"transformer_ls_lm", "paper_dh16_r1_l4_w8", "fp32"},
    {"transformer_ls_lm", "paper_dh16_r1_l4_w8", "bf16"},
    {"transformer_ls_lm", "blocks_B48_M16_w16_r2", "fp32"},
    {"transformer_ls_lm", "blocks_B48_M16_w16_r2", "bf16"},
    {"transformer_ls_lm", "blocks_B32_M32_w32_l16", "fp32"},
    {"transformer_ls_lm", "blocks_B32_M32_w32_l16", "bf16"},
    {"transformer_ls_lm", "paper_dh32_r2_l16_w64", "int8"},
    {"transformer_ls_lm", "blocks_B48_M16_w16_r2", "int8"},
    {"transformer_ls_lm", "paper_dh16_r1_l4_w8", "fp32", true},
    {"transformer_ls_lm", "paper_dh16_r1_l4_w8", "bf16", true},
    {"transformer_ls_lm", "blocks_B48_M16_w16_r2", "fp32", true},
    {"transformer_ls_lm", "blocks_B32_M32_w32_l16", "bf16", true},
    {"transformer_ls_lm", "paper_dh16_r1_l4_w8", "fp16", true},
    {"cst", "ar_L4_alpha3", "fp32"},
    {"cst", "ar_L4_alpha3", "bf16"},
    {"cst", "ar_L8_alpha1_post", "int8"},
    {"cst", "ar_L8_alpha1_post", "fp32"},
    {"cst", "ar_adaptive", "bf16"},
    {"cst", "ar_alpha2_zero_tiled", "fp32"},
    {"cst", "ar_parallel", "bf16"},
    {"cst", "ar_pool_max", "fp32"},
    {"cst", "ar_L4_alpha3", "bf16", true},
    {"cst", "ar_pool_max", "fp32", true},
};

// The settings that this machine computes; a device that is the host computes in every type.
std::vector<Setting> SettingsHere() {
  std::vector<Setting> here;
  for (const Setting& setting : kSettings) {
    if (setting.device || CpuComputesIn(setting.dtype)) here.push_back(setting);
  }
  return here;
}

INSTANTIATE_TEST_SUITE_P(Settings, DecoderBatchInvariance, testing::ValuesIn(SettingsHere()),
                         [](const auto& info) {
                           return std::string(info.param.family) + "_" + info.param.golden + "_" +
                                  info.param.dtype + (info.param.device ? "_device" : "");
                         });

}  // namespace
}  // namespace longview::models
