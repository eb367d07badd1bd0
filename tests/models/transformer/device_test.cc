// Memory of encoders of plain transformer layers with their layers on a device.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/encoder/family.h"
#include "tests/models/encoder/device_frame.h"
#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

// Documents of a model: as long as a small limit takes, few tokens, some tokens masked.
std::vector<Request> Documents(const GoldenCase& golden) {
  const auto model = golden.Load("fp32");
  const int most = std::min(model->info().max_tokens, 300);
  std::vector<Request> requests;
  for (const int tokens : {most, 3, most, most / 2}) {
    TokenInput ids = RandomIds(tokens, static_cast<uint32_t>(requests.size()), 4, 12);
    ids.attention_mask.assign(ids.ids.size(), 1);
    for (size_t t = 1; requests.size() > 1 && t < ids.ids.size(); t += 2) ids.attention_mask[t] = 0;
    requests.push_back(TokenRequest(Task::kEmbedding, std::move(ids), {"last_hidden_state"}));
  }
  return requests;
}

TEST(DeviceTransformerMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase windows("config_half_new", "modernbert");
  ExpectDropsChangeNothing(windows.directory(), MakeModernBert, Documents(windows));
  const GoldenCase full("text_reranker", "xlm_roberta");
  ExpectDropsChangeNothing(full.directory(), MakeRoberta, Documents(full));
}

TEST(DeviceTransformerMemoryTest, AdmissionIsExact) {
  const GoldenCase full("text_reranker", "xlm_roberta");
  ExpectAdmittedExactly(full.directory(), MakeRoberta, Documents(full));
}

}  // namespace
}  // namespace longview::models
