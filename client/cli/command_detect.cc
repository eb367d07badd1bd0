#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/draw/detections.h"
#include "client/cli/inputs.h"
#include "client/cli/json_lines.h"
#include "client/cli/over_inputs.h"

namespace longview::client {
namespace {

// One line per detection behind the path, so that a picture without any is a line too.
std::string TextOf(const v1::DetectObjectsResponse& response) {
  std::string text = absl::StrCat(response.detections_size(), " found");
  for (const v1::Detection& found : response.detections()) {
    absl::StrAppend(
        &text, absl::StrFormat("\n  %s %.4f  %.1f %.1f %.1f %.1f", found.label(), found.score(),
                               found.x0(), found.y0(), found.x1(), found.y1()));
  }
  return text;
}

grpc::Status Draw(const std::string& image, const v1::DetectObjectsResponse& response,
                  const std::string& path) {
  absl::StatusOr<Picture> picture = ReadPicture(image);
  absl::Status status = picture.status();
  if (status.ok()) status = DrawDetections(response, *picture);
  if (!status.ok()) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, std::string(status.message()));
  }
  std::ofstream file(path, std::ios::binary);
  file << WritePng(*picture);
  file.close();
  if (file) return grpc::Status::OK;
  return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "--draw: cannot write " + path);
}

v1::DetectObjectsRequest RequestOf(const CommandLine& line) {
  v1::DetectObjectsRequest request;
  if (line.score_threshold) request.set_score_threshold(static_cast<float>(*line.score_threshold));
  if (line.max_detections) request.set_max_detections(*line.max_detections);
  request.set_masks(line.masks);
  if (line.tile) {
    request.mutable_tile()->set_size(*line.tile);
    request.mutable_tile()->set_overlap(line.tile_overlap.value_or(*line.tile / 8));
  }
  return request;
}

}  // namespace

ExitCode RunDetect(const CommandLine& line, Console& console) {
  std::map<std::string, std::string> places;
  if (!line.draw.empty()) {
    std::vector<std::string> paths;
    for (const Input& input : ListInputs(line.inputs)) paths.push_back(input.path);
    auto found = PlacesOf(paths, line.draw);
    if (!found.ok()) {
      console.err << "longview: " << found.status().message() << "\n";
      return kUsage;
    }
    places = *std::move(found);
  }
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const ExitCode chosen =
      ChooseModel(*connection.client, line, "object-detection", console, &model);
  if (chosen != kAllWell) return chosen;
  v1::DetectObjectsRequest shared = RequestOf(line);
  shared.set_model(model.name());
  return RunOverNamedInputs(line, console, [&](const std::string& path, const std::string& image) {
    v1::DetectObjectsRequest request = shared;
    request.set_image(image);
    v1::DetectObjectsResponse response;
    Outcome outcome;
    outcome.status = connection.client->DetectObjects(request, &response);
    if (outcome.status.ok() && !line.draw.empty()) {
      outcome.status = Draw(image, response, places.at(path));
    }
    outcome.json = ToJson(response);
    outcome.text = TextOf(response);
    return outcome;
  });
}

}  // namespace longview::client
