#include "server/api/tensor_encode.h"

#include <cstdint>
#include <string>

#include "server/api/tensor_decode.h"

namespace longview::server {
namespace {

using models::HostTensor;
using models::TensorType;

std::string RawContents(const HostTensor& tensor) {
  if (tensor.type != TensorType::kBytes) {
    return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
  }
  std::string raw;
  for (const std::string& element : tensor.strings) {
    const auto length = static_cast<uint32_t>(element.size());
    raw.append(reinterpret_cast<const char*>(&length), sizeof(length));
    raw += element;
  }
  return raw;
}

template <typename T, typename Field>
void Copy(const HostTensor& tensor, Field* field) {
  const auto* values = reinterpret_cast<const T*>(tensor.data.data());
  field->Add(values, values + tensor.data.size() / sizeof(T));
}

void TypedContents(const HostTensor& tensor, inference::InferTensorContents& out) {
  switch (tensor.type) {
    case TensorType::kFp32:
      return Copy<float>(tensor, out.mutable_fp32_contents());
    case TensorType::kInt64:
      return Copy<int64_t>(tensor, out.mutable_int64_contents());
    case TensorType::kInt32:
      return Copy<int32_t>(tensor, out.mutable_int_contents());
    case TensorType::kBool:
      return Copy<bool>(tensor, out.mutable_bool_contents());
    case TensorType::kBytes:
      out.mutable_bytes_contents()->Add(tensor.strings.begin(), tensor.strings.end());
  }
}

}  // namespace

void AppendOutput(const HostTensor& tensor, bool raw, inference::ModelInferResponse& response) {
  auto* output = response.add_outputs();
  output->set_name(tensor.name);
  output->set_datatype(std::string(DatatypeName(tensor.type)));
  output->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  if (raw) {
    *response.add_raw_output_contents() = RawContents(tensor);
  } else {
    TypedContents(tensor, *output->mutable_contents());
  }
}

}  // namespace longview::server
