// POST /v2/models/{m}/infer: the body as the protocol's protobuf request.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "nlohmann/json.hpp"

namespace longview::server {

// The outputs that the caller wants as bytes after the JSON instead of in it.
struct OutputForms {
  bool binary_by_default = false;      // binary_data_output of the request.
  std::map<std::string, bool> binary;  // binary_data of an output, if given.

  bool IsBinary(const std::string& output) const;
};

struct ParsedInference {
  // Every input in raw form, whichever form it came in. Without model and version.
  inference::ModelInferRequest request;
  OutputForms forms;
};

// `head` is the first part of the body, parsed; its data are freed as they are read. `binary` is
// what follows it: the inputs that have binary_data_size, in order. BYTES in JSON are UTF-8
// strings, those of `image` base64.
// INVALID_ARGUMENT names the input and what is wrong with it. Unknown members are ignored, as
// Triton does. Thread-safe.
absl::StatusOr<ParsedInference> ReadInference(nlohmann::json head, std::string_view binary);

// ReadInference on a head that is still JSON text.
absl::StatusOr<ParsedInference> ParseInference(std::string_view head, std::string_view binary);

}  // namespace longview::server
