// EXIF orientation: finding it and turning a picture by it.
#pragma once

#include "models/image/decode.h"
#include "models/image/raster.h"

namespace longview::models {

// The orientation (1 to 8) that the file's EXIF block states; 1 if it states none or nonsense.
int ReadOrientation(ImageFormat format, ImageBytes bytes);

// The picture as it is meant to be seen, by Pillow's ImageOps.exif_transpose: 2 mirrored, 3 turned
// by 180 degrees, 4 flipped, 5 transposed, 6 turned right, 7 transverse, 8 turned left.
Raster Oriented(Raster picture, int orientation);

}  // namespace longview::models
