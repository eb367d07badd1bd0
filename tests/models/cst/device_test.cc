// Composite Slice encoders with their layers on a device: masks and options that no golden case
// has, and memory.
#include <gtest/gtest.h>

#include <functional>

#include "models/encoder/family.h"
#include "tests/models/encoder/device_frame.h"
#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

// Documents of a model, one as long as it takes, with masked tokens, whole masked slices and
// padding; rows of padding are wanted too.
std::vector<Request> Documents(const GoldenCase& golden) {
  const auto model = golden.Load("fp32");
  const int most = model->info().max_tokens;
  std::vector<Request> requests;
  for (const int tokens : {most, 3, most, most / 2}) {
    TokenInput ids = RandomIds(tokens, static_cast<uint32_t>(requests.size()), 1, 40);
    ids.attention_mask.assign(ids.ids.size(), 1);
    for (size_t t = 1; requests.size() > 1 && t < ids.ids.size(); ++t) {
      ids.attention_mask[t] = t % 2 == 0 && t / 8 % 3 != 1 && t + 5 < ids.ids.size();
    }
    requests.push_back(TokenRequest(Task::kEmbedding, std::move(ids), {"last_hidden_state"}));
  }
  return requests;
}

TEST(DeviceCstMaskTest, LastStatesAreTheCpus) {
  for (const std::string name :
       {"lra_alpha2_mask", "lra_alpha3_zero_separate", "lra_global_first", "lra_mlp",
        "lra_pool_linear", "lra_pool_max", "lra_tiled_per_layer_tables"}) {
    const GoldenCase golden(name, "cst");
    ExpectTheCpusAnswers(name, golden.directory(), MakeCst, Documents(golden), {1e-4, 0.3, 0.06});
  }
}

// Options that no golden case has.
struct Option {
  const char* name;
  const char* golden;
  std::function<void(EditedModel&)> edit;
};

void DropFinalNorm(EditedModel& model) {
  model.config["final_layer_norm"] = false;
  model.tensors.erase("cst.encoder.LayerNorm.weight");
  model.tensors.erase("cst.encoder.LayerNorm.bias");
}

// One place per slice, one slice per token.
void CutIntoTokens(EditedModel& model) {
  model.config["slice_length"] = 1;
  model.config["extension_ratio"] = 3;
  model.config["ext_boundary"] = "zero";
  for (auto& [name, tensor] : model.tensors) {
    const bool local = name.ends_with("local_embeddings.weight");
    if (!local && !name.ends_with("global_embeddings.weight")) continue;
    tensor.shape[0] = local ? 1 : model.config["max_position_embeddings"].get<int64_t>();
    tensor.values.resize(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]), 0.25f);
  }
}

TEST(DeviceCstOptionTest, EveryOptionIsTheCpus) {
  const Option options[] = {
      {"post-norm, a last norm", "lra_L8",
       [](EditedModel& m) {
         m.config["norm_position"] = "post";
         m.config["final_layer_norm"] = true;
         m.config["hidden_act"] = "relu";
       }},
      {"pre-norm, no last norm", "lra_L8",
       [](EditedModel& m) {
         DropFinalNorm(m);
         m.config["hidden_act"] = "gelu_tanh";
         m.config["embedding_scale"] = 2.5;
       }},
      {"tiled places, zero boundary", "lra_tiled_per_layer_tables",
       [](EditedModel& m) { m.config["ext_boundary"] = "zero"; }},
      {"slices of one token, zero boundary", "lra_tiled_per_layer_tables", CutIntoTokens},
      {"no places, zero boundary", "lra_conventional",
       [](EditedModel& m) {
         m.config["ext_boundary"] = "zero";
         m.config["extension_ratio"] = 3;
       }},
      {"mixed places of the largest slices", "lra_mlp",
       [](EditedModel& m) {
         m.config["msmra_order"] = "global_first";
         m.config["slice_pooling"] = "max";
         m.config["mask_empty_slices"] = false;
       }},
      {"slices through a linear, side by side", "lra_pool_linear",
       [](EditedModel& m) {
         m.config["msmra_order"] = "parallel";
         m.config["norm_position"] = "post";
       }},
  };
  for (const Option& option : options) {
    const GoldenCase golden(option.golden, "cst");
    EditedModel edited(golden);
    option.edit(edited);
    ExpectTheCpusAnswers(option.name, edited.Write(), MakeCst, Documents(golden),
                         {1e-4, 0.6, 0.12});
  }
}

TEST(DeviceCstMemoryTest, AdmissionIsExact) {
  for (const std::string name : {"lra_alpha3_zero_separate", "lra_mlp", "lra_pool_linear"}) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "cst");
    ExpectAdmittedExactly(golden.directory(), MakeCst, Documents(golden));
  }
}

TEST(DeviceCstMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase golden("lra_L8", "cst");
  ExpectDropsChangeNothing(golden.directory(), MakeCst, Documents(golden));
}

}  // namespace
}  // namespace longview::models
