// Marks an error as "these bytes are no picture", which HTTP answers with a status of its own.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "models/model.h"

namespace longview::models {

inline absl::Status Undecodable(std::string_view message) {
  absl::Status status = absl::InvalidArgumentError({message.data(), message.size()});
  status.SetPayload({kUndecodableImage.data(), kUndecodableImage.size()}, absl::Cord());
  return status;
}

}  // namespace longview::models
