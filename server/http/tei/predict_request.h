// The body of POST /predict.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"
#include "server/api/calls/list_answer.h"
#include "server/http/members.h"
#include "server/http/tei/tei_body.h"

namespace longview::server {

// The scores of classes: the model's probabilities, or made of its logits.
enum class PredictScores { kProbabilities, kLogits, kSoftmax, kSigmoid };

struct PredictForm {
  PredictScores scores = PredictScores::kProbabilities;
  int top_k = 0;       // 0: all classes.
  bool batch = false;  // A list of answers is wanted, also of one.
};

struct PredictRequest {
  ListRequest<longview::v1::ClassifyRequest> list;
  PredictForm form;
};

// At most `most` texts. INVALID_ARGUMENT names the member.
absl::StatusOr<PredictRequest> ReadPredict(TeiBody body, size_t most);

// For tests.
std::vector<MemberInfo> PredictMembers();

}  // namespace longview::server
