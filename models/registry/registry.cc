#include "models/registry/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/cst/config.h"
#include "models/detection/model.h"
#include "models/directory/architecture.h"
#include "models/encoder/family.h"
#include "models/encoder/model.h"
#include "models/generation/model/family.h"
#include "models/generation/model/generator_loading.h"
#include "models/longformer/config.h"
#include "models/luna/config.h"
#include "models/luna_decoder/config.h"
#include "models/modernbert/config.h"
#include "models/roberta/config.h"
#include "models/status_macros.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls_text/config.h"
#include "models/vision/backbone.h"
#include "models/vision/load.h"

namespace longview::models {
namespace {

// A family of text encoders.
template <MakeEncoder kMake, ReadTokenizer kRead = nullptr>
Family Encoder(std::string_view name, std::span<const std::string_view> architectures) {
  return {name, architectures,
          [](const ModelDirectory& directory) { return DescribeEncoder(directory, kMake, kRead); },
          [](std::unique_ptr<Device> device, ModelDirectory directory, const LoadOptions& options,
             std::vector<std::string> notes) {
            return LoadEncoderAt(std::move(device), std::move(directory), options, kMake,
                                 std::move(notes), kRead);
          }};
}

// A family of generating models.
template <MakeGenerator kMake>
Family Generator(std::string_view name, std::span<const std::string_view> architectures) {
  return {name, architectures,
          [](const ModelDirectory& directory) { return DescribeGenerator(directory, kMake); },
          [](std::unique_ptr<Device> device, ModelDirectory directory, const LoadOptions& options,
             std::vector<std::string> notes) {
            return LoadGeneratorAt(std::move(device), std::move(directory), options, kMake,
                                   std::move(notes));
          }};
}

// A family of image models.
template <VisionBuilder (*kBuilder)()>
Family Vision(std::span<const std::string_view> architectures) {
  return {kBuilder().name, architectures,
          [](const ModelDirectory& directory) { return DescribeVision(directory, kBuilder()); },
          [](std::unique_ptr<Device> device, ModelDirectory directory, const LoadOptions& options,
             std::vector<std::string> notes) {
            return LoadVisionAt(std::move(device), std::move(directory), options, kBuilder(),
                                std::move(notes));
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
      Generator<MakeCstLm>("cst", CstLmArchitectures()),
      Vision<CvtLsBuilder>(kCvtLs),
      {"detection", kDetectors, DescribeDetector, LoadDetectorAt},
      Generator<MakeLed>("led", kLed),
      Encoder<MakeLongformer>("longformer", LongformerArchitectures()),
      Generator<MakeLongformerLm>("longformer_lm", kLongformerLm),
      Encoder<MakeModernBert>("modernbert", ModernBertArchitectures()),
      Encoder<MakeRoberta>("xlm_roberta", RobertaArchitectures()),
      Generator<MakeTransformerLs>("transformer_ls", LsLmArchitectures()),
      Encoder<MakeLsText>("transformer_ls_text", LsTextArchitectures()),
      Vision<VilBuilder>(kVil),
      Vision<VilLsBuilder>(kVilLs),
      Encoder<MakeLuna, ReadLunaTokenizer>("luna", LunaArchitectures()),
      Generator<MakeLunaDecoder>("luna", LunaDecoderArchitectures()),
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
  ASSIGN_OR_RETURN(ModelDirectory directory, OpenModelDirectory(path));
  if (options.task) {
    RETURN_IF_ERROR(ChooseTask(*options.task, directory));
  }
  ASSIGN_OR_RETURN(const Family* family, ChooseFamily(directory));
  const bool lacks_head = LacksNamedHead(directory);
  if (!directory.serving.truncate) directory.serving.truncate = options.truncate;
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, DeviceForModel(options.device, notes));
  auto model = family->load_at(std::move(device), std::move(directory), options, std::move(notes));
  if (!model.ok()) return WithTaskHint(model.status(), lacks_head);
  return model;
}

}  // namespace longview::models
