#include "models/text/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, TokenizerKind>, 11> kClasses = {
    {{"BertTokenizer", TokenizerKind::kBert},
     {"ElectraTokenizer", TokenizerKind::kBert},
     {"DistilBertTokenizer", TokenizerKind::kBert},
     {"MobileBertTokenizer", TokenizerKind::kBert},
     {"SqueezeBertTokenizer", TokenizerKind::kBert},
     {"LxmertTokenizer", TokenizerKind::kBert},
     {"RobertaTokenizer", TokenizerKind::kRoberta},
     {"LongformerTokenizer", TokenizerKind::kRoberta},
     {"LEDTokenizer", TokenizerKind::kRoberta},
     {"BartTokenizer", TokenizerKind::kRoberta},
     {"XLMRobertaTokenizer", TokenizerKind::kXlmRoberta}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kClassOfModel = {
    {{"bert", "BertTokenizer"},
     {"roberta", "RobertaTokenizer"},
     {"longformer", "LongformerTokenizer"},
     {"led", "LEDTokenizer"},
     {"xlm-roberta", "XLMRobertaTokenizer"}}};

constexpr std::array<std::string_view, 13> kGiveTypes = {"BertTokenizer",
                                                         "ElectraTokenizer",
                                                         "MobileBertTokenizer",
                                                         "SqueezeBertTokenizer",
                                                         "LxmertTokenizer",
                                                         "ConvBertTokenizer",
                                                         "LayoutLMTokenizer",
                                                         "DPRQuestionEncoderTokenizer",
                                                         "DPRContextEncoderTokenizer",
                                                         "FNetTokenizer",
                                                         "DebertaTokenizer",
                                                         "DebertaV2Tokenizer",
                                                         "CanineTokenizer"};

std::string StringOf(const json& file, const char* key) {
  const auto value = file.find(key);
  return value != file.end() && value->is_string() ? value->get<std::string>() : "";
}

std::string NameOf(const json& tokenizer_config, const json& model_config) {
  for (const json* file : {&tokenizer_config, &model_config}) {
    const std::string name = StringOf(*file, "tokenizer_class");
    if (!name.empty()) return std::string(WithoutFast(name));
  }
  const std::string model_type = StringOf(model_config, "model_type");
  for (const auto& [model, name] : kClassOfModel) {
    if (model == model_type) return std::string(name);
  }
  return "";
}

}  // namespace

std::string_view WithoutFast(std::string_view tokenizer_class) {
  constexpr std::string_view kFast = "Fast";
  if (tokenizer_class.ends_with(kFast)) tokenizer_class.remove_suffix(kFast.size());
  return tokenizer_class;
}

TokenizerClass FindTokenizerClass(const json& tokenizer_config, const json& model_config) {
  // Whatever class ModernBERT's files name, transformers reads their tokenizer.json.
  const bool reads_file = StringOf(model_config, "model_type") == "modernbert";
  const std::string name =
      reads_file ? "PreTrainedTokenizer" : NameOf(tokenizer_config, model_config);
  TokenizerClass found;
  if (!name.empty()) {
    found.kind = TokenizerKind::kGeneric;
    for (const auto& [known, kind] : kClasses) {
      if (known == name) found.kind = kind;
    }
    found.gives_types = std::find(kGiveTypes.begin(), kGiveTypes.end(), name) != kGiveTypes.end();
    found.name = name;
  }
  const auto inputs = tokenizer_config.find("model_input_names");
  if (inputs != tokenizer_config.end() && inputs->is_array()) {
    found.gives_types =
        std::find(inputs->begin(), inputs->end(), "token_type_ids") != inputs->end();
  }
  return found;
}

}  // namespace longview::models
