// The orientation that a file states, and turning a picture by it.
// Thread-safe: pure functions.
#pragma once

#include <optional>
#include <string>

#include "models/image/raster.h"

namespace longview::models {

// Blocks of a file that may state an orientation, as Pillow's Image.info holds them.
struct OrientationNotes {
  std::optional<std::string> exif;  // A TIFF structure, behind "Exif\0\0" or not.
  std::string xmp;                  // An XML packet.
};

// The orientation (1 to 8) by the rules of Pillow's getexif: Exif's tag, else tiff:Orientation of
// the XMP packet; 1 if neither states one, or what they state is nonsense.
int StatedOrientation(const OrientationNotes& notes);

// The picture as it is meant to be seen, by Pillow's ImageOps.exif_transpose: 2 mirrored, 3 turned
// by 180 degrees, 4 flipped, 5 transposed, 6 turned right, 7 transverse, 8 turned left.
Raster Oriented(Raster picture, int orientation);

}  // namespace longview::models
