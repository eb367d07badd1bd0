#include "server/api/infer/detection_outputs.h"

#include <cstring>

#include "server/api/infer/mask_rle.h"

namespace longview::server {
namespace {

using models::Detection;
using models::HostTensor;
using models::TensorType;

template <typename T>
void Append(T value, HostTensor& out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.data.insert(out.data.end(), bytes, bytes + sizeof(T));
}

}  // namespace

HostTensor MakeDetectionOutput(const PlannedOutput& output, const models::Answer& answer) {
  const models::ItemUsage& usage = answer.usage;
  HostTensor out;
  out.name = output.spec.name;
  out.type = output.spec.type;
  out.shape = {static_cast<int64_t>(answer.detections.size())};
  if (output.kind == OutputKind::kBoxes) out.shape.push_back(4);
  if (output.kind == OutputKind::kMaskPixels) {
    out.shape.insert(out.shape.end(), {usage.height, usage.width});
  }
  for (const Detection& found : answer.detections) {
    switch (output.kind) {
      case OutputKind::kBoxes:
        for (const float edge : {found.x0, found.y0, found.x1, found.y1}) Append(edge, out);
        break;
      case OutputKind::kDetectionScores:
        Append(found.score, out);
        break;
      case OutputKind::kDetectionLabels:
        Append(int64_t{found.id}, out);
        break;
      case OutputKind::kDetectionNames:
        out.strings.push_back(found.name);
        break;
      case OutputKind::kMaskRuns:
        out.strings.push_back(CocoRle(found.mask_runs, usage.height, usage.width));
        break;
      default:
        AppendMask(found.mask_runs, usage.height, usage.width, out.data);
    }
  }
  return out;
}

size_t MaskPixelBytes(const models::Answer& answer) {
  return answer.detections.size() * static_cast<size_t>(answer.usage.height) *
         static_cast<size_t>(answer.usage.width);
}

}  // namespace longview::server
