// The formats behind decode.h, one function pair each, and the error they share. Sides are those of
// the header; nobody but decode.cc calls the functions.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "models/image/decode.h"
#include "models/model.h"

namespace longview::models {

// Reads width, height and orientation (and refuses what cannot be served), nothing else.
absl::StatusOr<ImageHeader> ReadJpegHeader(ImageBytes bytes);
absl::StatusOr<ImageHeader> ReadPngHeader(ImageBytes bytes);
absl::StatusOr<ImageHeader> ReadWebpHeader(ImageBytes bytes);

// Fills `out`, whose sides are the header's.
absl::Status DecodeJpeg(ImageBytes bytes, Raster& out);
absl::Status DecodePng(ImageBytes bytes, Raster& out);
absl::Status DecodeWebp(ImageBytes bytes, Raster& out);

// Marks an error as "these bytes are no picture", which HTTP answers with a status of its own.
inline absl::Status Undecodable(std::string_view message) {
  absl::Status status = absl::InvalidArgumentError({message.data(), message.size()});
  status.SetPayload({kUndecodableImage.data(), kUndecodableImage.size()}, absl::Cord());
  return status;
}

}  // namespace longview::models
