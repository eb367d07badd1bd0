// A ModelInferRequest off the wire, raw or typed contents, for a model whose task the first byte
// picks.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/inference.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  const auto [kind, bytes] = fuzz::SplitKind(fuzz::AsText(data, size));
  inference::ModelInferRequest request;
  if (request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    fuzz::ReadInference(request, kind);
  }
  return 0;
}
