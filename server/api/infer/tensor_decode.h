// Input tensors of the Open Inference Protocol, raw or typed, checked before use.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "models/model.h"

namespace longview::server {

// The protocol's name of a type, "FP32".
std::string_view DatatypeName(models::TensorType type);

// A view of one input; valid as long as the request. Holds exactly the elements its shape says.
struct InputTensor {
  std::string_view name;
  models::TensorType type = models::TensorType::kBytes;
  std::vector<int64_t> shape;  // All extents at least 1.
  int64_t count = 0;           // Product of shape.
  bool is_raw = false;
  std::string_view raw;                                      // If is_raw.
  const inference::InferTensorContents* contents = nullptr;  // Else.
};

// All inputs of a request. INVALID_ARGUMENT names the input, what it holds and what it should:
// names the model does not list or that come twice, datatypes, extents below 1, element and
// byte counts, raw and typed contents in one request. INT32 passes where INT64 is listed.
absl::StatusOr<std::vector<InputTensor>> ReadInputs(const inference::ModelInferRequest& request,
                                                    const models::ModelInfo& info);

// REQUIRES: INT64 or INT32. Values that int32 cannot hold are INVALID_ARGUMENT.
absl::StatusOr<std::vector<int32_t>> ReadIntegers(const InputTensor& input);

// REQUIRES: FP32.
std::vector<float> ReadFloats(const InputTensor& input);

// REQUIRES: BYTES. Views into the request.
absl::StatusOr<std::vector<std::string_view>> ReadStrings(const InputTensor& input);

// "[2,3]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace longview::server
