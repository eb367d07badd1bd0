// A family's configuration from keys, as a directory's config.json would be read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "models/config/common_config.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"

namespace longview::models {

template <auto kParse>
auto ParseWith(const nlohmann::json& json)
    -> decltype(kParse(json, std::declval<CommonConfig>(), std::string())) {
  ASSIGN_OR_RETURN(const auto common, ParseCommonConfig(JsonReader(json, "config.json")));
  return kParse(json, common, "config.json");
}

}  // namespace longview::models
