#include "models/status_macros.h"
#include "server/api/api.h"

#include <string>

#include "server/api/infer/tensor_decode.h"
#include "server/api/models/model_service.h"

namespace longview::server {
namespace {

constexpr char kPlatform[] = "longview";

inference::DataType ConfigType(models::TensorType type) {
  switch (type) {
    case models::TensorType::kFp32:
      return inference::TYPE_FP32;
    case models::TensorType::kInt64:
      return inference::TYPE_INT64;
    case models::TensorType::kInt32:
      return inference::TYPE_INT32;
    case models::TensorType::kBool:
      return inference::TYPE_BOOL;
    case models::TensorType::kBytes:
      break;
  }
  return inference::TYPE_STRING;
}

template <typename Proto>
void Describe(const models::TensorSpec& spec, Proto* out) {
  out->set_name(spec.name);
  out->set_datatype(std::string(DatatypeName(spec.type)));
  out->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
}

template <typename Proto>
void Configure(const models::TensorSpec& spec, Proto* out) {
  out->set_name(spec.name);
  out->set_data_type(ConfigType(spec.type));
  out->mutable_dims()->Add(spec.shape.begin(), spec.shape.end());
}

}  // namespace

inference::ServerMetadataResponse Api::ServerMetadata() const {
  inference::ServerMetadataResponse out;
  out.set_name("longview");
  out.set_version(options().version);
  for (const char* extension : {"binary_tensor_data", "model_configuration", "model_repository",
                                "parameters", "statistics"}) {
    out.add_extensions(extension);
  }
  return out;
}

absl::StatusOr<inference::ModelMetadataResponse> Api::ModelMetadata(
    std::string_view name, std::string_view version) const {
  ASSIGN_OR_RETURN(const auto found, store().Find(name, version));
  const ServedModel& model = *found;
  const models::ModelInfo& info = model.model->info();
  inference::ModelMetadataResponse out;
  out.set_name(model.name);
  out.add_versions(model.version);
  out.set_platform(kPlatform);
  for (const models::TensorSpec& spec : info.inputs) Describe(spec, out.add_inputs());
  for (const models::TensorSpec& spec : info.outputs) Describe(spec, out.add_outputs());
  for (const auto& [name, value] : Properties(info, options())) {
    (*out.mutable_properties())[name] = value;
  }
  return out;
}

absl::StatusOr<inference::ModelConfigResponse> Api::ModelConfig(std::string_view name,
                                                                std::string_view version) const {
  ASSIGN_OR_RETURN(const auto found, store().Find(name, version));
  const ServedModel& model = *found;
  const models::ModelInfo& info = model.model->info();
  inference::ModelConfigResponse response;
  inference::ModelConfig& out = *response.mutable_config();
  out.set_name(model.name);
  out.set_platform(kPlatform);
  out.set_backend("longview");
  out.set_max_batch_size(0);
  for (const models::TensorSpec& spec : info.inputs) {
    auto* input = out.add_input();
    Configure(spec, input);
    input->set_optional(true);
  }
  for (const models::TensorSpec& spec : info.outputs) Configure(spec, out.add_output());
  for (const auto& [name, value] : Properties(info, options())) {
    (*out.mutable_parameters())[name].set_string_value(value);
  }
  out.mutable_model_transaction_policy()->set_decoupled(Generates(info.task));
  return response;
}

}  // namespace longview::server
