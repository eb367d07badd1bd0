// Generators that share the memory of a CachePool: each as exact as alone, whatever the others keep
// there, and whoever is loaded or freed meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "kernels/cache/cache_memory.h"
#include "models/directory/model_directory.h"
#include "models/generation/model/family.h"
#include "models/generation/model/generator_loading.h"
#include "tests/models/generation/generator_driver.h"
#include "tests/models/generation/golden.h"

namespace longview::models {
namespace {

struct Golden {
  std::string model;
  MakeGenerator make;
};
const Golden kLs = {"transformer_ls_lm/paper_dh32_r2_l16_w64/model", MakeTransformerLs};
const Golden kLuna = {"luna/causal_tied/model", MakeLunaDecoder};

std::unique_ptr<Model> Load(const Golden& golden, const LoadOptions& options) {
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(GoldenFile(golden.model));
  EXPECT_TRUE(directory.ok()) << directory.status();
  absl::StatusOr<std::unique_ptr<Model>> model =
      LoadGeneratorAt(nullptr, *std::move(directory), options, golden.make);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

std::unique_ptr<Model> LoadIn(CachePool& pool, const Golden& golden) {
  return Load(golden, {.dtype = "fp32", .cache = &pool});
}

// Ids that every model here has, as many as it reads and a few less.
Request Prompt(const Model& model, int seed) {
  const int tokens = std::min(400, model.info().max_tokens - 16);
  std::vector<int32_t> ids;
  for (int i = 0; i < tokens; ++i) ids.push_back(4 + (i * 7 + seed * 13 + i * i * seed) % 30);
  GenerationOptions options = NewTokens(12);
  options.ignore_eos = true;
  return IdsRequest(std::move(ids), options);
}

std::vector<int32_t> Tokens(Model& model, int seed) {
  return Generate(model, Prompt(model, seed)).sequences.front().token_ids;
}

double StateBytes(const Model& model) {
  return (*model.Prepare(Prompt(model, 0)))->cost().state_bytes;
}

TEST(SharedCache, EachIsAsExactAsAlone) {
  const auto alone = Load(kLs, {.dtype = "fp32", .cache_bytes = 256 << 20});
  const auto luna_alone = Load(kLuna, {.dtype = "fp32", .cache_bytes = 256 << 20});
  // Room for what one request of each reserves, and a little to keep.
  CachePool pool(2.5 * StateBytes(*alone) + StateBytes(*luna_alone));
  kernels::CacheMemory& memory = pool.On("cpu");
  const auto first = LoadIn(pool, kLs), second = LoadIn(pool, kLs), luna = LoadIn(pool, kLuna);
  for (int seed = 0; seed < 6; ++seed) {
    const std::vector<int32_t> want = Tokens(*alone, seed);
    EXPECT_EQ(Tokens(*first, seed), want);
    EXPECT_EQ(Tokens(*second, seed + 1), Tokens(*alone, seed + 1));
    EXPECT_EQ(Tokens(*luna, seed), Tokens(*luna_alone, seed));
    EXPECT_LE(memory.used() + memory.evictable() + memory.idle(), memory.capacity());
  }
  EXPECT_GT(first->cache().evictable + second->cache().evictable, 0);
  EXPECT_EQ(first->cache().capacity, static_cast<double>(memory.capacity()));
}

TEST(SharedCache, UseIsTheModelsOwnAndThatOfAll) {
  CachePool pool(64 << 20);
  auto first = LoadIn(pool, kLs);
  const auto second = LoadIn(pool, kLs);
  Live one = StartOn(*first, Prompt(*first, 1)), other = StartOn(*second, Prompt(*second, 2));
  StepOnce(*first, {&one});
  StepOnce(*second, {&other});
  EXPECT_GT(first->cache().used, 0);
  EXPECT_GT(second->cache().used, 0);
  const double all = first->cache().used + second->cache().used;
  EXPECT_EQ(first->cache().used_by_all, all);
  EXPECT_EQ(second->cache().used_by_all, all);
  one = Live();
  EXPECT_EQ(first->cache().used, 0);
  first.reset();
  EXPECT_EQ(second->cache().used_by_all, second->cache().used);
  EXPECT_EQ(pool.On("cpu").evictable(), static_cast<int64_t>(second->cache().evictable));
  EXPECT_TRUE(Finish(*second, other).ok());
}

TEST(SharedCache, ModelsComeAndGoBesideOneAtWork) {
  const auto alone = Load(kLs, {.dtype = "fp32", .cache_bytes = 256 << 20});
  CachePool pool(3 * StateBytes(*alone));
  {
    const auto model = LoadIn(pool, kLs);
    std::thread loader([&] {
      for (int i = 0; i < 8; ++i) LoadIn(pool, i % 2 == 0 ? kLuna : kLs);
    });
    for (int seed = 0; seed < 12; ++seed) {
      EXPECT_EQ(Tokens(*model, seed % 4), Tokens(*alone, seed % 4));
    }
    loader.join();
  }
  const kernels::CacheMemory& memory = pool.On("cpu");
  EXPECT_EQ(memory.used() + memory.evictable() + memory.idle() + memory.headroom(), 0);
}

// A model is calibrated even where the others use all there is: by what a step of its own may take.
TEST(SharedCache, WarmUpBesideAFullCache) {
  const auto alone = Load(kLs, {.dtype = "fp32", .cache_bytes = 256 << 20});
  CachePool pool(StateBytes(*alone));
  const auto busy = LoadIn(pool, kLs);
  Live running = StartOn(*busy, Prompt(*busy, 1));
  StepOnce(*busy, {&running});
  const auto late = LoadIn(pool, kLs);
  ASSERT_TRUE(late->WarmUp().ok());
  EXPECT_GT((*late->Prepare(Prompt(*late, 0)))->cost().seconds, 0);
  const absl::StatusOr<Answer> answer = Finish(*busy, running);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->sequences.front().token_ids, Tokens(*alone, 1));
}

}  // namespace
}  // namespace longview::models
