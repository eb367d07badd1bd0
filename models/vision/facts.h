// Facts that a family of image models tells the shared part. Plain data, constant after load.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace longview::models {

struct VisionFacts {
  std::string family;         // "vil"
  std::string architecture;   // architectures[0] of config.json.
  int width = 0;              // Width of the feature vector that enters the head.
  std::vector<int> strides;   // Pixels per side of a token, by stage.
  std::vector<int> channels;  // Channels of a map, by stage; empty where it cannot be a backbone.
  std::vector<std::string> labels;  // Empty: no head.
  ProblemType problem_type = ProblemType::kSingleLabel;
};

}  // namespace longview::models
