#include "models/layers/activation_names.h"

#include <array>
#include <utility>

#include "models/config/named_values.h"

namespace longview::models {
namespace {

constexpr std::array<std::pair<std::string_view, Activation>, 8> kActivations = {{
    {"gelu", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},
}};

}  // namespace

Activation ReadActivation(JsonReader& reader, std::string_view key) {
  return ReadNamed(reader, key, reader.StringOr(key, "gelu"), kActivations);
}

}  // namespace longview::models
