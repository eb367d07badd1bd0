#include "models/registry/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/cst/config.h"
#include "models/cst/lm_model.h"
#include "models/cvt_ls/model.h"
#include "models/detection/model.h"
#include "models/directory/architecture.h"
#include "models/encoder/families.h"
#include "models/encoder/model.h"
#include "models/led/model.h"
#include "models/longformer/config.h"
#include "models/longformer_lm/model.h"
#include "models/luna/config.h"
#include "models/luna_decoder/model.h"
#include "models/modernbert/config.h"
#include "models/roberta/config.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/model.h"
#include "models/transformer_ls_text/config.h"
#include "models/vil/model.h"

namespace longview::models {
namespace {

// A family of text encoders.
template <MakeEncoder kMake>
Family Encoder(std::string_view name, std::span<const std::string_view> architectures) {
  return {name, architectures,
          [](const ModelDirectory& directory) { return DescribeEncoder(directory, kMake); },
          [](ModelDirectory directory, const LoadOptions& options) {
            return LoadEncoder(std::move(directory), options, kMake);
          }};
}

std::span<const Family> Families() {
  static constexpr std::array<std::string_view, 1> kLed = {"LEDForConditionalGeneration"};
  static constexpr std::array<std::string_view, 1> kLongformerLm = {"LongformerForCausalLM"};
  static constexpr std::array<std::string_view, 1> kVil = {"ViLForImageClassification"};
  static constexpr std::array<std::string_view, 1> kVilLs = {"ViLLSForImageClassification"};
  static constexpr std::array<std::string_view, 1> kCvtLs = {"CvTLSForImageClassification"};
  static constexpr std::array<std::string_view, 1> kDetectors = {"ViLForObjectDetection"};
  static const Family kFamilies[] = {
      Encoder<MakeBert>("bert", BertArchitectures()),
      Encoder<MakeCst>("cst", CstEncoderArchitectures()),
      {"cst", CstLmArchitectures(), DescribeCstLm, LoadCstLm},
      {"cvt_ls", kCvtLs, DescribeCvtLs, LoadCvtLs},
      {"detection", kDetectors, DescribeDetector, LoadDetector},
      {"led", kLed, DescribeLed, LoadLed},
      Encoder<MakeLongformer>("longformer", LongformerArchitectures()),
      {"longformer_lm", kLongformerLm, DescribeLongformerLm, LoadLongformerLm},
      Encoder<MakeModernBert>("modernbert", ModernBertArchitectures()),
      Encoder<MakeRoberta>("xlm_roberta", RobertaArchitectures()),
      {"transformer_ls", LsLmArchitectures(), DescribeTransformerLs, LoadTransformerLs},
      Encoder<MakeLsText>("transformer_ls_text", LsTextArchitectures()),
      {"vil", kVil, DescribeVil, LoadVil},
      {"vil_ls", kVilLs, DescribeVilLs, LoadVilLs},
      {"luna", LunaArchitectures(), DescribeLuna, LoadLuna},
      {"luna", LunaDecoderArchitectures(), DescribeLunaDecoder, LoadLunaDecoder},
  };
  return kFamilies;
}

// Null if the class is not served.
const Family* FamilyOf(std::string_view architecture) {
  for (const Family& family : Families()) {
    const auto& served = family.architectures;
    if (std::find(served.begin(), served.end(), architecture) != served.end()) return &family;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<const Family*> ChooseFamily(ModelDirectory& directory) {
  if (const Family* family = FamilyOf(directory.common.architecture)) return family;
  if (directory.class_source == ClassSource::kConfig) {
    const std::string named = directory.common.architecture;
    if (TakeBaseClass(ClassSource::kNotServed, directory)) {
      if (const Family* family = FamilyOf(directory.common.architecture)) return family;
      directory.common.architecture = named;
    }
  }
  return RefuseClass(directory);
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
  const absl::StatusOr<const Family*> family = ChooseFamily(*directory);
  if (!family.ok()) return family.status();
  const bool lacks_head = LacksNamedHead(*directory);
  if (!directory->serving.truncate) directory->serving.truncate = options.truncate;
  auto model = (*family)->load(*std::move(directory), options);
  if (!model.ok()) return WithTaskHint(model.status(), lacks_head);
  return model;
}

}  // namespace longview::models
