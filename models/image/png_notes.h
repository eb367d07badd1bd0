// Chunks of a PNG file that libpng's header reading does not reach: those behind the pixels.
// Thread-safe: a pure function.
#pragma once

#include "absl/status/statusor.h"
#include "models/image/decode.h"
#include "models/image/orientation.h"

namespace longview::models {

// Notes of the eXIf and text chunks, wherever they stand in the file. A file may end without
// IEND, or in bytes that are no chunk; INVALID_ARGUMENT if it ends inside a chunk behind the
// pixels.
absl::StatusOr<OrientationNotes> ReadPngNotes(ImageBytes bytes);

}  // namespace longview::models
