#include "models/vision/prepare.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/image/pipeline.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

absl::Status BadImage(std::string_view problem) {
  return absl::InvalidArgumentError(std::string(problem));
}

absl::Status CheckTask(const VisionFacts& facts, Task task) {
  const bool served =
      task == Task::kImageFeatures || (task == Task::kImageClassification && !facts.labels.empty());
  if (served) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(facts.architecture, " does no ", std::string(TaskName(task))));
}

absl::Status FillOutline(const VisionFrontEnd& front, const PixelInput& pixels, ImageItem& item) {
  const ImagePipeline pipeline = front.pipeline.value_or(ImagePipeline());
  item.given = {pixels.height, pixels.width};
  absl::Status status = CheckPixelCount("width", pipeline, item.given, front.limits);
  if (status.ok()) item.pixels.size = pipeline.FinalSize(item.given);
  return status;
}

absl::Status FillPixels(const VisionFrontEnd& front, const Request& request, ImageItem& item) {
  if (request.pixel_values) {
    const PixelInput& pixels = *request.pixel_values;
    if (IsOutline(request)) return FillOutline(front, pixels, item);
    RETURN_IF_ERROR(CheckPixelValues(pixels));
    item.given = {pixels.height, pixels.width};
    item.pixels = {item.given, pixels.values};
    return absl::OkStatus();
  }
  if (!front.pipeline) {
    return BadImage(
        "image: the model directory has no preprocessor_config.json; send pixel_values");
  }
  const ImageBytes bytes(reinterpret_cast<const uint8_t*>(request.image->data()),
                         request.image->size());
  ASSIGN_OR_RETURN(PreparedImage prepared, front.pipeline->Run(bytes, front.limits));
  item.pixels = std::move(prepared.pixels);
  item.given = prepared.given;
  return absl::OkStatus();
}

absl::Status FillTensors(const VisionFacts& facts, const Request& request, ImageItem& item) {
  for (const std::string& name : request.tensors) {
    const std::optional<int> stage = StageOfTensor(facts, name);
    const bool logits = name == "logits" && item.task == Task::kImageClassification;
    if (!stage && !logits && name != "embedding") {
      return BadImage(absl::StrCat("tensors: \"", name.substr(0, 64), "\" is not an output of ",
                                   std::string(TaskName(item.task))));
    }
    if (stage) item.stages.push_back(*stage);
  }
  std::sort(item.stages.begin(), item.stages.end());
  item.stages.erase(std::unique(item.stages.begin(), item.stages.end()), item.stages.end());
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckImageRequest(const Request& request) {
  if (request.text || request.tokens || request.text_pair || request.question) {
    return BadImage("text: an image model reads image or pixel_values");
  }
  if (request.image.has_value() == request.pixel_values.has_value()) {
    return BadImage("image: give either image or pixel_values");
  }
  return absl::OkStatus();
}

absl::Status CheckPixelValues(const PixelInput& pixels) {
  if (pixels.height < 1 || pixels.width < 1 ||
      pixels.values.size() != size_t{3} * pixels.height * pixels.width) {
    return BadImage(absl::StrCat("pixel_values: ", pixels.values.size(), " values are not 3 x ",
                                 pixels.height, " x ", pixels.width));
  }
  for (size_t i = 0; i < pixels.values.size(); ++i) {
    if (std::isfinite(pixels.values[i])) continue;
    return BadImage(
        absl::StrCat("pixel_values[", i, "]: ", pixels.values[i], " is not a finite number"));
  }
  return absl::OkStatus();
}

absl::Status CheckFamilySize(std::string_view field, const VisionFamily& family, ImageSize size) {
  const absl::Status status = family.CheckSize(size);
  if (status.ok()) return status;
  return BadImage(absl::StrCat(std::string(field), ": ", std::string(status.message())));
}

bool IsOutline(const Request& request) {
  return request.pixel_values && request.pixel_values->outline;
}

std::string_view PixelField(const Request& request) {
  if (IsOutline(request)) return "width";
  return request.image ? "image" : "pixel_values";
}

std::optional<int> StageOfTensor(const VisionFacts& facts, std::string_view tensor) {
  constexpr std::string_view kPrefix = "features.";
  if (!tensor.starts_with(kPrefix)) return std::nullopt;
  int stride = 0;
  if (!absl::SimpleAtoi(std::string(tensor.substr(kPrefix.size())), &stride)) return std::nullopt;
  const auto found = std::find(facts.strides.rbegin(), facts.strides.rend(), stride);
  if (found == facts.strides.rend()) return std::nullopt;
  return static_cast<int>(facts.strides.rend() - found) - 1;
}

void AddFeatureMaps(const VisionFacts& facts, bool by_default, ModelInfo& info) {
  for (size_t s = 0; s < facts.strides.size(); ++s) {
    const std::string name = absl::StrCat("features.", facts.strides[s]);
    if (StageOfTensor(facts, name) != static_cast<int>(s)) continue;
    info.outputs.push_back({name, TensorType::kFp32, {1, -1, -1, -1}, by_default});
  }
}

absl::StatusOr<std::unique_ptr<ImageItem>> PrepareImageItem(const VisionFrontEnd& front,
                                                            const Request& request) {
  const VisionFacts& facts = front.family->facts();
  RETURN_IF_ERROR(CheckTask(facts, request.task));
  RETURN_IF_ERROR(CheckImageRequest(request));
  auto item = std::make_unique<ImageItem>();
  item->task = request.task;
  item->typed = request.typed;
  item->top_k = request.top_k;
  item->tensors = request.tensors;
  RETURN_IF_ERROR(FillTensors(facts, request, *item));
  RETURN_IF_ERROR(FillPixels(front, request, *item));
  RETURN_IF_ERROR(CheckFamilySize(PixelField(request), *front.family, item->pixels.size));
  ItemUsage usage;
  usage.width = item->given.width;
  usage.height = item->given.height;
  item->SetUsage(usage);
  return item;
}

}  // namespace longview::models
