#include "server/http/v2/infer_request.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/v2/tensor_json.h"

namespace longview::server {
namespace {

using inference::InferParameter;
using nlohmann::json;
using ParameterMap = google::protobuf::Map<std::string, InferParameter>;

constexpr char kBinarySize[] = "binary_data_size";
constexpr char kBinaryData[] = "binary_data";
constexpr char kBinaryOutput[] = "binary_data_output";

// Member `name` of an object; null if it has none.
const json& MemberAt(const json& object, const char* name) {
  static const json kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

absl::Status ReadParameter(const json& value, const std::string& field, InferParameter* out) {
  switch (value.type()) {
    case json::value_t::boolean:
      out->set_bool_param(value.get<bool>());
      return absl::OkStatus();
    case json::value_t::number_integer:
      out->set_int64_param(value.get<int64_t>());
      return absl::OkStatus();
    case json::value_t::number_unsigned:
      if (std::in_range<int64_t>(value.get<uint64_t>())) {
        out->set_int64_param(value.get<int64_t>());
      } else {
        out->set_uint64_param(value.get<uint64_t>());
      }
      return absl::OkStatus();
    case json::value_t::number_float:
      out->set_double_param(value.get<double>());
      return absl::OkStatus();
    case json::value_t::string:
      out->set_string_param(value.get<std::string>());
      return absl::OkStatus();
    default:
      return FieldError(field, absl::StrCat("expected a string, a number, true or false, got ",
                                            Describe(value), " (lists are JSON in a string)"));
  }
}

// All parameters but `own`, which is HTTP's and goes to the caller.
absl::Status ReadParameters(const json& holder, const std::string& field, const char* own,
                            ParameterMap* out, json* own_value) {
  const json& parameters = MemberAt(holder, "parameters");
  if (parameters.is_null()) return absl::OkStatus();
  if (!parameters.is_object()) {
    return FieldError(field, absl::StrCat("expected an object, got ", Describe(parameters)));
  }
  for (const auto& [name, value] : parameters.items()) {
    if (name == own) {
      *own_value = value;
      continue;
    }
    RETURN_IF_ERROR(ReadParameter(value, absl::StrCat(field, ".", name), &(*out)[name]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RequiredString(const json& holder, const char* member,
                                           const std::string& field) {
  const json& value = MemberAt(holder, member);
  if (value.is_null()) return FieldError(field, absl::StrCat("lacks ", member));
  return ReadString(value, absl::StrCat(field, ".", member));
}

// The product of the extents; nullopt beyond 64 bits.
std::optional<int64_t> ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

// Takes inputs one after the other out of the binary part.
class InputReader {
 public:
  InputReader(std::string_view binary, inference::ModelInferRequest* request)
      : binary_(binary), request_(request) {}

  // Frees the data of `input`.
  absl::Status Read(json& input, const std::string& place) {
    if (!input.is_object()) {
      return FieldError(place, absl::StrCat("expected an object, got ", Describe(input)));
    }
    ASSIGN_OR_RETURN(std::string name, RequiredString(input, "name", place));
    ASSIGN_OR_RETURN(std::string datatype, RequiredString(input, "datatype", place));
    std::vector<int64_t> shape;
    RETURN_IF_ERROR(AppendNumbers(MemberAt(input, "shape"), place + ".shape", &shape));
    auto* tensor = request_->add_inputs();
    json binary_size;
    RETURN_IF_ERROR(ReadParameters(input, place + ".parameters", kBinarySize,
                                   tensor->mutable_parameters(), &binary_size));
    ASSIGN_OR_RETURN(std::string raw, Elements(input, name, datatype, shape, binary_size));
    request_->add_raw_input_contents(std::move(raw));
    tensor->set_name(std::move(name));
    tensor->set_datatype(std::move(datatype));
    tensor->mutable_shape()->Add(shape.begin(), shape.end());
    return absl::OkStatus();
  }

  size_t left() const { return binary_.size(); }

 private:
  absl::StatusOr<std::string> Elements(json& input, const std::string& name,
                                       const std::string& datatype,
                                       const std::vector<int64_t>& shape, const json& binary_size) {
    const std::string field = absl::StrCat("input ", Quoted(name));
    const bool has_data = input.contains("data");
    if (has_data == !binary_size.is_null()) {
      return FieldError(field, has_data ? "has both data and binary_data_size"
                                        : "has neither data nor binary_data_size");
    }
    if (!has_data) return TakeBinary(field, binary_size);
    const json data = std::exchange(input["data"], nullptr);
    ASSIGN_OR_RETURN(RawTensor raw, TensorFromJson(data, datatype, name));
    const std::optional<int64_t> wanted = ElementCount(shape);
    if (!wanted || *wanted != raw.elements) {
      return FieldError(
          field, absl::StrCat("data has ", raw.elements, " elements, shape ", json(shape).dump(),
                              " asks for ", wanted ? absl::StrCat(*wanted) : "too many"));
    }
    return std::move(raw.bytes);
  }

  absl::StatusOr<std::string> TakeBinary(const std::string& field, const json& size_value) {
    ASSIGN_OR_RETURN(const uint64_t size,
                     ReadNumber<uint64_t>(size_value, absl::StrCat(field, ".", kBinarySize)));
    if (size > binary_.size()) {
      return FieldError(field, absl::StrCat("binary_data_size is ", size, ", the body has only ",
                                            binary_.size(), " bytes left"));
    }
    std::string bytes(binary_.substr(0, size));
    binary_.remove_prefix(size);
    return bytes;
  }

  std::string_view binary_;
  inference::ModelInferRequest* request_;
};

absl::Status ReadOutput(const json& output, const std::string& place, ParsedInference* parsed) {
  if (!output.is_object()) {
    return FieldError(place, absl::StrCat("expected an object, got ", Describe(output)));
  }
  ASSIGN_OR_RETURN(std::string name, RequiredString(output, "name", place));
  auto* wanted = parsed->request.add_outputs();
  wanted->set_name(name);
  json binary;
  absl::Status status = ReadParameters(output, place + ".parameters", kBinaryData,
                                       wanted->mutable_parameters(), &binary);
  if (!status.ok() || binary.is_null()) return status;
  const absl::StatusOr<bool> flag = ReadBool(binary, place + ".parameters." + kBinaryData);
  if (flag.ok()) parsed->forms.binary[name] = *flag;
  return flag.status();
}

// Calls `each` with every element of the array member `name`, and its place.
template <typename Each>
absl::Status ForEach(json& body, const char* name, Each each) {
  const auto member = body.find(name);
  if (member == body.end()) return absl::OkStatus();
  json& list = *member;
  if (!list.is_array()) {
    return FieldError(name, absl::StrCat("expected an array, got ", Describe(list)));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    RETURN_IF_ERROR(each(list[i], absl::StrCat(name, "[", i, "]")));
  }
  return absl::OkStatus();
}

}  // namespace

bool OutputForms::IsBinary(const std::string& output) const {
  const auto it = binary.find(output);
  return it == binary.end() ? binary_by_default : it->second;
}

absl::StatusOr<ParsedInference> ParseInference(std::string_view head, std::string_view binary) {
  ASSIGN_OR_RETURN(json body, ParseJson(head));
  return ReadInference(std::move(body), binary);
}

absl::StatusOr<ParsedInference> ReadInference(json body, std::string_view binary) {
  RETURN_IF_ERROR(ExpectObject(body));
  ParsedInference parsed;
  if (const json& id = MemberAt(body, "id"); !id.is_null()) {
    ASSIGN_OR_RETURN(std::string value, ReadString(id, "id"));
    parsed.request.set_id(std::move(value));
  }
  json all_binary;
  absl::Status status = ReadParameters(body, "parameters", kBinaryOutput,
                                       parsed.request.mutable_parameters(), &all_binary);
  if (!status.ok()) return status;
  if (!all_binary.is_null()) {
    ASSIGN_OR_RETURN(const bool flag, ReadBool(all_binary, "parameters.binary_data_output"));
    parsed.forms.binary_by_default = flag;
  }
  InputReader inputs(binary, &parsed.request);
  status = ForEach(body, "inputs", [&](json& input, const std::string& place) {
    return inputs.Read(input, place);
  });
  if (!status.ok()) return status;
  if (parsed.request.inputs().empty()) return FieldError("inputs", "none given");
  if (inputs.left() > 0) {
    return FieldError(kBinarySize, absl::StrCat("the body has ", inputs.left(),
                                                " bytes more than the inputs' sizes add up to"));
  }
  status = ForEach(body, "outputs", [&](const json& output, const std::string& place) {
    return ReadOutput(output, place, &parsed);
  });
  if (!status.ok()) return status;
  return parsed;
}

}  // namespace longview::server
