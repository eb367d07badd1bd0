// Options of the autoregressive model that no fixture has: what must hold for any of them. Token by
// token is the whole text, cuts of a prompt change no bit, later tokens change nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/cst/cst_case.h"
#include "tests/models/golden/edited_model.h"

namespace longview::models {
namespace {

EditedTensor Random(std::vector<int64_t> shape, uint32_t seed) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  EditedTensor tensor{std::move(shape), {}};
  for (size_t i = 0; i < count; ++i) tensor.values.push_back(normal(random));
  return tensor;
}

void RemovePositions(EditedModel& model) {
  std::erase_if(model.tensors,
                [](const auto& entry) { return entry.first.find("ms_vipe") != std::string::npos; });
}

void PoolLinearly(EditedModel& model) {
  model.config["slice_pooling"] = "linear";
  for (int i = 0; i < 2; ++i) {
    const std::string name =
        "cst.encoder.layer." + std::to_string(i) + ".attention.self.slice_pooling";
    model.tensors[name + ".weight"] = Random({32, 32, 4}, 7 + i);
    model.tensors[name + ".bias"] = Random({32}, 9 + i);
  }
}

// The fixture has D = 32, L = 4, alpha = 3, V = 40, N_max = 40, 2 layers.
struct Option {
  const char* name;
  std::function<void(EditedModel&)> edit;
};

const Option kOptions[] = {
    {"linear_pooling", PoolLinearly},
    {"global_first", [](EditedModel& m) { m.config["msmra_order"] = "global_first"; }},
    {"global_first_pooled_linearly",
     [](EditedModel& m) {
       m.config["msmra_order"] = "global_first";
       PoolLinearly(m);
     }},
    {"conventional_positions",
     [](EditedModel& m) {
       RemovePositions(m);
       m.config["position_embedding"] = "conventional";
       m.tensors["cst.embeddings.position_embeddings.weight"] = Random({40, 32}, 3);
     }},
    {"no_positions_zero_boundary",
     [](EditedModel& m) {
       RemovePositions(m);
       m.config["position_embedding"] = "none";
       m.config["ext_boundary"] = "zero";
     }},
    {"zero_boundary", [](EditedModel& m) { m.config["ext_boundary"] = "zero"; }},
    {"shifted_before", [](EditedModel& m) { m.config["global_query_shift"] = "embedding"; }},
    {"factorised_and_untied",
     [](EditedModel& m) {
       m.config["embedding_size"] = 20;
       m.config["embedding_layer_norm"] = true;
       m.config["tie_word_embeddings"] = false;
       m.config["lm_head_bias"] = true;
       m.tensors["cst.embeddings.word_embeddings.weight"] = Random({40, 20}, 4);
       m.tensors["cst.embeddings.LayerNorm.weight"] = Random({20}, 5);
       m.tensors["cst.embeddings.LayerNorm.bias"] = Random({20}, 6);
       m.tensors["cst.embeddings_project.weight"] = Random({32, 20}, 7);
       m.tensors["cst.embeddings_project.bias"] = Random({32}, 8);
       m.tensors["lm_head.weight"] = Random({40, 32}, 9);
       m.tensors["lm_head.bias"] = Random({40}, 10);
     }},
    {"no_last_norm_no_output_projection",
     [](EditedModel& m) {
       m.config["final_layer_norm"] = false;
       m.config["attention_output_projection"] = false;
       std::erase_if(m.tensors, [](const auto& entry) {
         return entry.first.starts_with("cst.encoder.LayerNorm") ||
                entry.first.find("attention.output.dense") != std::string::npos;
       });
     }},
    {"post_norm_with_a_last_norm_and_types",
     [](EditedModel& m) {
       m.config["norm_position"] = "post";
       m.config["type_vocab_size"] = 2;
       m.tensors["cst.embeddings.token_type_embeddings.weight"] = Random({2, 32}, 11);
     }},
};

class CstLmOptions : public ::testing::TestWithParam<Option> {
 protected:
  CstLmOptions() : edited_(GoldenCase("ar_L4_alpha3", "cst")) {
    GetParam().edit(edited_);
    const auto model = edited_.Load();
    EXPECT_TRUE(model.ok()) << model.status();
    model_.emplace(edited_.directory(), "fp32");
    std::mt19937 random(1);
    for (int i = 0; i < 40; ++i) text_.push_back(static_cast<int32_t>(random() % 40));
  }

  EditedModel edited_;
  std::optional<CstCase> model_;
  std::vector<int32_t> text_;
};

TEST_P(CstLmOptions, TokenByTokenIsTheWholeText) {
  const std::vector<float> whole = model_->Read(*model_->New(), text_);
  const std::vector<double> want(whole.begin(), whole.end());
  EXPECT_LE(LargestDifference(model_->Step(*model_->New(), text_), want), 2e-5);
}

TEST_P(CstLmOptions, CutsChangeNoBit) {
  const std::vector<float> whole = model_->Read(*model_->New(), text_);
  for (const int chunk : {1, 3, 4, 17}) {
    EXPECT_EQ(model_->ReadInChunks(*model_->New(), text_, chunk), whole) << chunk;
  }
}

TEST_P(CstLmOptions, OnADeviceLogitsAreTheHosts) {
  const std::vector<float> want = model_->Read(*model_->New(), text_);
  CstCase device(edited_.directory(), "fp32", 1 << 22, 40,
                 Device::OnHost(kernels::cuda::testing::EmulatedPlugin()));
  EXPECT_LE(LargestDifference(device.Read(*device.New(), text_), {want.begin(), want.end()}), 1e-4);
  for (const int chunk : {3, 17}) {
    EXPECT_EQ(device.ReadInChunks(*device.New(), text_, chunk), device.Read(*device.New(), text_))
        << chunk;
  }
}

TEST_P(CstLmOptions, LaterTokensChangeNothing) {
  const std::vector<float> whole = model_->Read(*model_->New(), text_);
  for (const size_t t : {3, 4, 5, 15, 39}) {
    std::vector<int32_t> other = text_;
    other[t] = (other[t] + 1) % 40;
    const std::vector<float> got = model_->Read(*model_->New(), other);
    const auto kept = static_cast<ptrdiff_t>(t * 40);
    EXPECT_TRUE(std::equal(whole.begin(), whole.begin() + kept, got.begin())) << t;
    EXPECT_FALSE(std::equal(whole.begin() + kept, whole.end(), got.begin() + kept)) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Options, CstLmOptions, ::testing::ValuesIn(kOptions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace longview::models
