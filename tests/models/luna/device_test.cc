// Luna's encoders with their layers on a device: options that no golden case has, and memory.
#include <gtest/gtest.h>

#include <functional>

#include "models/encoder/family.h"
#include "tests/models/encoder/device_frame.h"
#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

// Documents of a model, one as long as it takes, one with some tokens masked, one of few tokens.
std::vector<Request> Documents(const GoldenCase& golden) {
  const auto model = golden.Load("fp32");
  const int most = model->info().max_tokens;
  std::vector<Request> requests;
  for (const int tokens : {most, 3, most, most / 2}) {
    TokenInput ids = RandomIds(tokens, static_cast<uint32_t>(requests.size()), 4, 12);
    ids.attention_mask.assign(ids.ids.size(), 1);
    for (size_t t = 1; requests.size() > 1 && t < ids.ids.size(); t += 2) ids.attention_mask[t] = 0;
    requests.push_back(TokenRequest(Task::kEmbedding, std::move(ids), {"last_hidden_state"}));
  }
  return requests;
}

// Options that no golden case has.
struct Option {
  const char* name;
  const char* golden;
  std::function<void(EditedModel&)> edit;
};

constexpr char kEncoder[] = "encoder.encoder.";

void EraseNorm(EditedModel& model, const std::string& name) {
  model.tensors.erase(kEncoder + name + ".weight");
  model.tensors.erase(kEncoder + name + ".bias");
}

void DropEmbeddingNorm(EditedModel& model) {
  model.config["embedding_layer_norm"] = false;
  EraseNorm(model, "emb_layer_norm");
  EraseNorm(model, "proj_emb_layer_norm");
}

void DropPositions(EditedModel& model, const std::string& type) {
  model.config["position_type"] = type;
  model.tensors.erase(std::string(kEncoder) + "embed_positions.weight");
}

TEST(DeviceLunaOptionTest, EveryOptionIsTheCpus) {
  const Option options[] = {
      {"pre-norm, sinusoids", "lra_use_p",
       [](EditedModel& m) {
         // Its last norms get the weights of the embeddings'.
         for (const std::string kind : {".weight", ".bias"}) {
           m.tensors[kEncoder + ("layer_norm" + kind)] =
               m.tensors[kEncoder + ("emb_layer_norm" + kind)];
           m.tensors[kEncoder + ("proj_layer_norm" + kind)] =
               m.tensors[kEncoder + ("proj_emb_layer_norm" + kind)];
         }
         DropEmbeddingNorm(m);
         DropPositions(m, "sinusoidal");
         m.config["norm_position"] = "pre";
         m.config["embed_scale"] = 3.0;
       }},
      {"no norm of embeddings, no positions", "lra_text_cls",
       [](EditedModel& m) {
         DropEmbeddingNorm(m);
         DropPositions(m, "none");
         m.config["activation"] = "relu";
       }},
      {"gains of one more", "lra_mean_ragged",
       [](EditedModel& m) { m.config["layer_norm_gain"] = "one_plus"; }},
      {"all rows of P", "lra_use_p",
       [](EditedModel& m) { m.config["dynamic_projection"] = false; }},
  };
  const TypeLimits limits = {1e-4, 1.0, 0.2};
  for (const Option& option : options) {
    const GoldenCase golden(option.golden, "luna");
    EditedModel edited(golden);
    option.edit(edited);
    const std::vector<Request> documents = Documents(golden);
    ExpectTheCpusAnswers(option.name, edited.Write(), MakeLuna, documents, limits);
    std::vector<Request> classified = documents;
    for (Request& request : classified) {
      request.task = Task::kTextClassification;
      request.tensors = {"logits"};
    }
    ExpectTheCpusAnswers(option.name, edited.Write(), MakeLuna, classified, limits);
  }
}

TEST(DeviceLunaMemoryTest, AdmissionIsExact) {
  for (const std::string name : {"lra_use_p", "mlm_tied", "seqcls_attention"}) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "luna");
    ExpectAdmittedExactly(golden.directory(), MakeLuna, Documents(golden));
  }
}

TEST(DeviceLunaMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase golden("lra_mean_ragged", "luna");
  ExpectDropsChangeNothing(golden.directory(), MakeLuna, Documents(golden));
}

}  // namespace
}  // namespace longview::models
