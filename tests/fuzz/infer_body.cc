// The body of POST /v2/models/{m}/infer: a byte that picks the model's task, JSON, a NUL byte and
// the binary part.
#include "server/http/v2/infer_request.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/inference.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  const auto [kind, body] = fuzz::SplitKind(fuzz::AsText(data, size));
  const auto [json, binary] = fuzz::SplitAtNul(body);
  const auto parsed = server::ParseInference(json, binary);
  if (!parsed.ok()) {
    FUZZ_PROMISE(!parsed.status().message().empty());
    return 0;
  }
  FUZZ_PROMISE(parsed->request.inputs_size() == parsed->request.raw_input_contents_size());
  fuzz::ReadInference(parsed->request, kind);
  return 0;
}
