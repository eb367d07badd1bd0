#include "models/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/architecture.h"
#include "models/cst/config.h"
#include "models/cst/lm_model.h"
#include "models/cst/model.h"
#include "models/cvt_ls/model.h"
#include "models/detection/model.h"
#include "models/led/model.h"
#include "models/longformer/model.h"
#include "models/longformer_lm/model.h"
#include "models/luna/model.h"
#include "models/luna_decoder/model.h"
#include "models/modernbert/config.h"
#include "models/modernbert/model.h"
#include "models/roberta/bert.h"
#include "models/roberta/config.h"
#include "models/roberta/model.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/model.h"
#include "models/transformer_ls_text/model.h"
#include "models/vil/model.h"

namespace longview::models {
namespace {

std::span<const Family> Families() {
  static constexpr std::array<std::string_view, 1> kLed = {"LEDForConditionalGeneration"};
  static constexpr std::array<std::string_view, 1> kLongformerLm = {"LongformerForCausalLM"};
  static constexpr std::array<std::string_view, 1> kVil = {"ViLForImageClassification"};
  static constexpr std::array<std::string_view, 1> kVilLs = {"ViLLSForImageClassification"};
  static constexpr std::array<std::string_view, 1> kCvtLs = {"CvTLSForImageClassification"};
  static constexpr std::array<std::string_view, 1> kDetectors = {"ViLForObjectDetection"};
  static const Family kFamilies[] = {
      {"bert", BertArchitectures(), DescribeBert, LoadBert},
      {"cst", CstEncoderArchitectures(), DescribeCst, LoadCst},
      {"cst", CstLmArchitectures(), DescribeCstLm, LoadCstLm},
      {"cvt_ls", kCvtLs, DescribeCvtLs, LoadCvtLs},
      {"detection", kDetectors, DescribeDetector, LoadDetector},
      {"led", kLed, DescribeLed, LoadLed},
      {"longformer", LongformerArchitectures(), DescribeLongformer, LoadLongformer},
      {"longformer_lm", kLongformerLm, DescribeLongformerLm, LoadLongformerLm},
      {"modernbert", ModernBertArchitectures(), DescribeModernBert, LoadModernBert},
      {"xlm_roberta", RobertaArchitectures(), DescribeRoberta, LoadRoberta},
      {"transformer_ls", LsLmArchitectures(), DescribeTransformerLs, LoadTransformerLs},
      {"transformer_ls_text", LsTextArchitectures(), DescribeLsText, LoadLsText},
      {"vil", kVil, DescribeVil, LoadVil},
      {"vil_ls", kVilLs, DescribeVilLs, LoadVilLs},
      {"luna", LunaArchitectures(), DescribeLuna, LoadLuna},
      {"luna", LunaDecoderArchitectures(), DescribeLunaDecoder, LoadLunaDecoder},
  };
  return kFamilies;
}

}  // namespace

absl::StatusOr<const Family*> FindFamily(const ModelDirectory& directory) {
  const std::string& wanted = directory.common.architecture;
  std::string known;
  for (const Family& family : Families()) {
    for (const std::string_view architecture : family.architectures) {
      if (architecture == wanted) return &family;
      absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(architecture));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(directory.config_path, ": \"architectures\": \"",
                                                 wanted.substr(0, 64),
                                                 "\" is not served; served are ", known));
}

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& path,
                                                 const LoadOptions& options) {
  if (const absl::StatusOr<Devices> devices = FindDevices(options.device); !devices.ok()) {
    return devices.status();
  }
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(path);
  if (!directory.ok()) return directory.status();
  if (options.task) {
    if (absl::Status chosen = ChooseTask(*options.task, *directory); !chosen.ok()) return chosen;
  }
  const absl::StatusOr<const Family*> family = FindFamily(*directory);
  if (!family.ok()) return family.status();
  return (*family)->load(*std::move(directory), options);
}

}  // namespace longview::models
