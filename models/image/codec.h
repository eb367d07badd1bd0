// The formats behind decode.h, one function pair each. Sides are those of the header; nobody but
// decode.cc calls these.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/image/decode.h"

namespace longview::models {

// Reads width, height and orientation (and refuses what cannot be served), nothing else.
absl::StatusOr<ImageHeader> ReadJpegHeader(ImageBytes bytes);
absl::StatusOr<ImageHeader> ReadPngHeader(ImageBytes bytes);
absl::StatusOr<ImageHeader> ReadWebpHeader(ImageBytes bytes);

// Fills `out`, whose sides are the header's.
absl::Status DecodeJpeg(ImageBytes bytes, Raster& out);
absl::Status DecodePng(ImageBytes bytes, Raster& out);
absl::Status DecodeWebp(ImageBytes bytes, Raster& out);

}  // namespace longview::models
