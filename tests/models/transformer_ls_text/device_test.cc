// Memory of Transformer-LS text encoders with their layers on a device.
#include <gtest/gtest.h>

#include "models/encoder/family.h"
#include "tests/models/encoder/device_frame.h"
#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

// Documents of a model, one as long as it takes, with some tokens masked; whole last states are
// wanted beside what the head reads.
std::vector<Request> Documents(const GoldenCase& golden) {
  const auto model = golden.Load("fp32");
  const int most = model->info().max_tokens;
  std::vector<Request> requests;
  for (const int tokens : {most, 3, most, most / 2}) {
    TokenInput ids = RandomIds(tokens, static_cast<uint32_t>(requests.size()), 1, 9);
    for (size_t t = 1; requests.size() != 1 && t + 1 < ids.ids.size(); t += 2) ids.ids[t] = 0;
    requests.push_back(
        TokenRequest(Task::kEmbedding, std::move(ids), {"embedding", "last_hidden_state"}));
  }
  return requests;
}

TEST(DeviceLsTextMemoryTest, AdmissionIsExact) {
  for (const std::string name : {"first_token_w4_r2", "mean_length_w2_r0", "one_layer_w4_r3"}) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "transformer_ls_text");
    ExpectAdmittedExactly(golden.directory(), MakeLsText, Documents(golden));
  }
}

TEST(DeviceLsTextMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase golden("all_layers_tied_w3", "transformer_ls_text");
  ExpectDropsChangeNothing(golden.directory(), MakeLsText, Documents(golden));
}

}  // namespace
}  // namespace longview::models
