#include "client/cli/draw/detections.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/draw/canvas.h"

namespace longview::client {

namespace {

constexpr Rgb kWhite = {255, 255, 255};

// Dark enough for white letters on them.
constexpr Rgb kColors[] = {{200, 30, 45},  {20, 110, 190}, {15, 130, 60},  {200, 95, 10},
                           {120, 50, 160}, {0, 125, 130},  {190, 40, 130}, {110, 85, 30},
                           {70, 70, 190},  {90, 110, 20},  {150, 60, 60},  {60, 90, 110}};

const Rgb& ColorOf(int label) { return kColors[static_cast<unsigned>(label) % std::size(kColors)]; }

void Tint(const std::vector<uint32_t>& runs, const Rgb& color, Picture& picture) {
  int64_t at = 0;
  bool inside = false;
  for (const uint32_t run : runs) {
    for (int64_t i = at; inside && i < at + run; ++i) {
      Blend(picture, static_cast<int>(i / picture.height), static_cast<int>(i % picture.height),
            color, 0.4f);
    }
    at += run;
    inside = !inside;
  }
}

// The label above the box, or inside it where there is no room.
void Caption(const longview::v1::Detection& found, int thickness, Picture& picture) {
  const int dot = std::max(1, thickness / 2);
  const std::string text = absl::StrFormat("%s %.2f", found.label(), found.score());
  const int height = (kTextDots + 2) * dot;
  const int left = static_cast<int>(std::lround(found.x0()));
  int top = static_cast<int>(std::lround(found.y0())) - height;
  if (top < 0) top += height;
  Fill(picture, left, top, left + TextWidth(text, dot) + 2 * dot, top + height,
       ColorOf(found.label_id()));
  Write(picture, left + dot, top + dot, dot, text, kWhite);
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> MaskRuns(const std::string& coco, int width, int height) {
  const absl::Status wrong = absl::InvalidArgumentError("mask_rle: not the mask of this picture");
  const auto json = nlohmann::json::parse(coco, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("size", nlohmann::json()) != nlohmann::json{height, width} ||
      !json.contains("counts") || !json["counts"].is_string()) {
    return wrong;
  }
  std::vector<uint32_t> runs;
  int64_t value = 0, total = 0;
  int shift = 0;
  for (const char c : json["counts"].get<std::string>()) {
    const int group = c - 48;
    if (group < 0 || group > 63 || shift > 30) return wrong;
    value |= int64_t{group & 31} << shift;
    shift += 5;
    if ((group & 32) != 0) continue;
    if ((group & 16) != 0) value -= int64_t{1} << shift;
    if (runs.size() > 2) value += runs[runs.size() - 2];
    total += value;
    if (value < 0 || total > int64_t{width} * height) return wrong;
    runs.push_back(static_cast<uint32_t>(value));
    value = shift = 0;
  }
  if (total != int64_t{width} * height) return wrong;
  return runs;
}

absl::Status DrawDetections(const longview::v1::DetectObjectsResponse& response, Picture& picture) {
  const int thickness = std::max(1, std::min(picture.width, picture.height) / 250);
  const auto& found = response.detections();
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    if (!it->mask_rle().empty()) {
      const auto runs = MaskRuns(it->mask_rle(), picture.width, picture.height);
      if (!runs.ok()) return runs.status();
      Tint(*runs, ColorOf(it->label_id()), picture);
    }
    Frame(picture, static_cast<int>(std::lround(it->x0())), static_cast<int>(std::lround(it->y0())),
          static_cast<int>(std::lround(it->x1())), static_cast<int>(std::lround(it->y1())),
          thickness, ColorOf(it->label_id()));
    Caption(*it, thickness, picture);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> PlacesOf(const std::vector<std::string>& inputs,
                                                            const std::string& target) {
  std::map<std::string, std::string> places;
  std::error_code error;
  if (target.ends_with("/")) std::filesystem::create_directories(target, error);
  if (!std::filesystem::is_directory(target, error)) {
    if (inputs.size() == 1 && !target.ends_with("/")) return std::map{std::pair(inputs[0], target)};
    return absl::InvalidArgumentError(
        absl::StrCat("--draw: ", target, " is no directory, for ", inputs.size(), " pictures"));
  }
  std::set<std::string> taken;
  for (const std::string& input : inputs) {
    if (places.contains(input)) continue;
    const std::string stem = input == "-" ? "input" : std::filesystem::path(input).stem().string();
    std::string name = stem;
    for (int number = 2; !taken.insert(name).second; ++number)
      name = absl::StrCat(stem, "-", number);
    places[input] = (std::filesystem::path(target) / absl::StrCat(name, ".png")).string();
  }
  return places;
}

}  // namespace longview::client
