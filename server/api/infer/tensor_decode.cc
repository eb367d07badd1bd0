#include "server/api/infer/tensor_decode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/status_macros.h"
#include "server/api/calls/context.h"
#include "server/api/infer/parameter_values.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using inference::InferTensorContents;
using models::TensorType;

static_assert(std::endian::native == std::endian::little, "raw tensors are little-endian");

// Extents whose product is beyond this cannot be in any message.
constexpr int64_t kMaxElements = int64_t{1} << 40;

std::string FieldOf(std::string_view name) { return absl::StrCat("input ", Quoted(name)); }

const models::TensorSpec* FindSpec(const std::vector<models::TensorSpec>& specs,
                                   std::string_view name) {
  for (const models::TensorSpec& spec : specs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

absl::StatusOr<TensorType> CheckDatatype(const models::TensorSpec& spec,
                                         std::string_view datatype) {
  if (datatype == DatatypeName(spec.type)) return spec.type;
  if (spec.type == TensorType::kInt64 && datatype == "INT32") return TensorType::kInt32;
  return BadField(FieldOf(spec.name),
                  absl::StrCat("datatype is ", Quoted(datatype), ", must be ",
                               std::string(DatatypeName(spec.type)),
                               spec.type == TensorType::kInt64 ? " or INT32" : ""));
}

absl::StatusOr<int64_t> CountElements(std::string_view name, const std::vector<int64_t>& shape) {
  if (shape.empty()) return BadField(FieldOf(name), "shape is empty");
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 1) {
      return BadField(FieldOf(name), absl::StrCat("shape ", ShapeText(shape),
                                                  " has an extent below 1: no items, or 0 tokens"));
    }
    if (extent > kMaxElements / count) {
      return BadField(FieldOf(name), absl::StrCat("shape ", ShapeText(shape), " is too large"));
    }
    count *= extent;
  }
  return count;
}

int64_t TypedTotal(const InferTensorContents& c) {
  return int64_t{c.bool_contents_size()} + c.int_contents_size() + c.int64_contents_size() +
         c.uint_contents_size() + c.uint64_contents_size() + c.fp32_contents_size() +
         c.fp64_contents_size() + c.bytes_contents_size();
}

// Elements in the one field that belongs to `type`.
int64_t TypedCount(const InferTensorContents& contents, TensorType type) {
  switch (type) {
    case TensorType::kInt64:
      return contents.int64_contents_size();
    case TensorType::kInt32:
      return contents.int_contents_size();
    case TensorType::kFp32:
      return contents.fp32_contents_size();
    case TensorType::kBool:
      return contents.bool_contents_size();
    case TensorType::kBytes:
      return contents.bytes_contents_size();
  }
  return 0;
}

int64_t ElementBytes(TensorType type) {
  switch (type) {
    case TensorType::kInt64:
      return 8;
    case TensorType::kInt32:
    case TensorType::kFp32:
      return 4;
    case TensorType::kBool:
    case TensorType::kBytes:
      break;
  }
  return 1;
}

absl::Status CheckTyped(const InputTensor& input) {
  const int64_t held = TypedCount(*input.contents, input.type);
  if (TypedTotal(*input.contents) != held) {
    return BadField(FieldOf(input.name),
                    absl::StrCat("contents hold elements of another type than ",
                                 std::string(DatatypeName(input.type))));
  }
  if (held == input.count) return absl::OkStatus();
  return BadField(FieldOf(input.name),
                  absl::StrCat("contents hold ", held, " elements, shape ", ShapeText(input.shape),
                               " needs ", input.count));
}

absl::Status CheckRaw(const InputTensor& input) {
  // The elements of BYTES are counted when they are read.
  if (input.type == TensorType::kBytes) return absl::OkStatus();
  const int64_t needed = input.count * ElementBytes(input.type);
  if (static_cast<int64_t>(input.raw.size()) == needed) return absl::OkStatus();
  return BadField(FieldOf(input.name),
                  absl::StrCat("raw contents have ", input.raw.size(), " bytes, ",
                               std::string(DatatypeName(input.type)), " of shape ",
                               ShapeText(input.shape), " needs ", needed));
}

// Bytes of the contents in raw form.
int64_t ContentBytes(const InputTensor& input) {
  if (input.is_raw) return static_cast<int64_t>(input.raw.size());
  if (input.type != TensorType::kBytes) return input.count * ElementBytes(input.type);
  int64_t bytes = 0;
  for (const std::string& element : input.contents->bytes_contents()) {
    bytes += static_cast<int64_t>(sizeof(uint32_t) + element.size());
  }
  return bytes;
}

// Checks the parameters of HTTP's binary extension, which some clients send here, too. They change
// nothing.
absl::Status CheckParameters(
    const InputTensor& input,
    const google::protobuf::Map<std::string, inference::InferParameter>& parameters) {
  for (const auto& [name, value] : parameters) {
    if (name == "binary_data") {
      if (value.has_bool_param()) continue;
      return BadField(FieldOf(input.name), "parameter binary_data is not true or false");
    }
    if (name != "binary_data_size") {
      return BadField(FieldOf(input.name), absl::StrCat("unknown parameter ", Quoted(name)));
    }
    const int64_t bytes = ContentBytes(input);
    const std::optional<int64_t> claimed = AsInteger(value);
    if (claimed == bytes) continue;
    return BadField(FieldOf(input.name), absl::StrCat("binary_data_size is ", ValueText(value),
                                                      ", the contents have ", bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<InputTensor> ReadInput(const inference::ModelInferRequest::InferInputTensor& tensor,
                                      const models::ModelInfo& info, const std::string* raw) {
  const models::TensorSpec* spec = FindSpec(info.inputs, tensor.name());
  if (spec == nullptr && tensor.name() == "text") {
    return BadField(FieldOf(tensor.name()), "the model has no tokenizer; send token ids");
  }
  if (spec == nullptr) {
    const std::string names = absl::StrJoin(
        info.inputs, ", ", [](std::string* out, const auto& known) { *out += known.name; });
    return BadField(FieldOf(tensor.name()), absl::StrCat("unknown name; the model takes: ", names));
  }
  ASSIGN_OR_RETURN(const TensorType type, CheckDatatype(*spec, tensor.datatype()));
  InputTensor input;
  input.name = tensor.name();
  input.type = type;
  input.shape.assign(tensor.shape().begin(), tensor.shape().end());
  ASSIGN_OR_RETURN(const int64_t count, CountElements(input.name, input.shape));
  input.count = count;
  input.is_raw = raw != nullptr;
  if (raw != nullptr) input.raw = *raw;
  input.contents = &tensor.contents();
  absl::Status status = input.is_raw ? CheckRaw(input) : CheckTyped(input);
  if (status.ok()) status = CheckParameters(input, tensor.parameters());
  if (!status.ok()) return status;
  return input;
}

absl::Status CheckRawAgainstInputs(const inference::ModelInferRequest& request) {
  if (request.raw_input_contents_size() == 0) return absl::OkStatus();
  if (request.raw_input_contents_size() != request.inputs_size()) {
    return BadField("raw_input_contents",
                    absl::StrCat(request.raw_input_contents_size(), " entries for ",
                                 request.inputs_size(), " inputs; one per input is needed"));
  }
  for (const auto& tensor : request.inputs()) {
    if (TypedTotal(tensor.contents()) == 0) continue;
    return BadField(FieldOf(tensor.name()),
                    "has typed contents although the request has raw_input_contents");
  }
  return absl::OkStatus();
}

template <typename T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

}  // namespace

std::string_view DatatypeName(TensorType type) {
  switch (type) {
    case TensorType::kFp32:
      return "FP32";
    case TensorType::kInt64:
      return "INT64";
    case TensorType::kInt32:
      return "INT32";
    case TensorType::kBool:
      return "BOOL";
    case TensorType::kBytes:
      break;
  }
  return "BYTES";
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  // The most extents that are quoted: one more than an excerpt can show.
  constexpr size_t kShown = 33;
  const auto end = shape.begin() + static_cast<ptrdiff_t>(std::min(shape.size(), kShown));
  return Excerpt(absl::StrCat("[", absl::StrJoin(shape.begin(), end, ","), "]"));
}

absl::StatusOr<std::vector<InputTensor>> ReadInputs(const inference::ModelInferRequest& request,
                                                    const models::ModelInfo& info) {
  if (request.inputs_size() == 0) return BadField("inputs", "none given");
  RETURN_IF_ERROR(CheckRawAgainstInputs(request));
  std::vector<InputTensor> inputs;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const std::string* raw =
        request.raw_input_contents_size() > 0 ? &request.raw_input_contents(i) : nullptr;
    ASSIGN_OR_RETURN(InputTensor input, ReadInput(request.inputs(i), info, raw));
    for (const InputTensor& other : inputs) {
      if (other.name == input.name) return BadField(FieldOf(other.name), "given twice");
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

absl::StatusOr<std::vector<int32_t>> ReadIntegers(const InputTensor& input) {
  std::vector<int32_t> out(input.count);
  if (input.type == TensorType::kInt32) {
    if (input.is_raw) {
      std::memcpy(out.data(), input.raw.data(), out.size() * sizeof(int32_t));
    } else {
      std::copy(input.contents->int_contents().begin(), input.contents->int_contents().end(),
                out.begin());
    }
    return out;
  }
  for (int64_t i = 0; i < input.count; ++i) {
    const int64_t value = input.is_raw ? Load<int64_t>(input.raw.data() + i * 8)
                                       : input.contents->int64_contents(static_cast<int>(i));
    if (value != static_cast<int32_t>(value)) {
      return BadField(FieldOf(input.name),
                      absl::StrCat("element ", i, " is ", value, ", out of range"));
    }
    out[i] = static_cast<int32_t>(value);
  }
  return out;
}

std::vector<float> ReadFloats(const InputTensor& input) {
  std::vector<float> out(input.count);
  if (input.is_raw) {
    std::memcpy(out.data(), input.raw.data(), out.size() * sizeof(float));
  } else {
    std::copy(input.contents->fp32_contents().begin(), input.contents->fp32_contents().end(),
              out.begin());
  }
  return out;
}

absl::StatusOr<std::vector<std::string_view>> ReadStrings(const InputTensor& input) {
  std::vector<std::string_view> out;
  if (!input.is_raw) {
    out.assign(input.contents->bytes_contents().begin(), input.contents->bytes_contents().end());
    return out;
  }
  std::string_view rest = input.raw;
  while (!rest.empty()) {
    const auto index = static_cast<int64_t>(out.size());
    if (rest.size() < sizeof(uint32_t)) {
      return BadField(FieldOf(input.name), absl::StrCat("raw contents end inside the length of "
                                                        "element ",
                                                        index));
    }
    const auto length = Load<uint32_t>(rest.data());
    rest.remove_prefix(sizeof(uint32_t));
    if (length > rest.size()) {
      return BadField(FieldOf(input.name),
                      absl::StrCat("element ", index, " says it has ", length, " bytes, ",
                                   rest.size(), " are left in the raw contents"));
    }
    out.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
    if (static_cast<int64_t>(out.size()) > input.count) break;
  }
  if (static_cast<int64_t>(out.size()) != input.count) {
    const std::string held = static_cast<int64_t>(out.size()) > input.count
                                 ? absl::StrCat("more than ", input.count)
                                 : absl::StrCat(out.size());
    return BadField(FieldOf(input.name),
                    absl::StrCat("raw contents hold ", held, " elements, shape ",
                                 ShapeText(input.shape), " needs ", input.count));
  }
  return out;
}

}  // namespace longview::server
