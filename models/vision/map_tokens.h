// The tokens of an image's feature map among the rows of a ragged batch, and what convolutions read
// of them.
//
// Rows of an image: [globals | local tokens], local tokens square by square where a stage attends
// so, else row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/dense/compute.h"
#include "models/image/pipeline.h"

namespace longview::models {

struct MapTokens {
  ImageSize map;
  int32_t row0 = 0;            // First row, the first global's.
  std::vector<int32_t> place;  // By row-major position: the row behind row0.
  int32_t size = 0;            // Which of the batch's map sizes.

  int64_t count() const { return static_cast<int64_t>(place.size()); }
};

// `square`: side of the squares that tokens lie in one after the other; 0: row by row.
MapTokens PlaceTokens(ImageSize map, int globals, int square, int32_t row0);

// Numbers the map sizes of a batch in the order they come, and returns them.
std::vector<ImageSize> NumberSizes(std::span<MapTokens> images);

// Local tokens counted image after image.
class TokenFinder {
 public:
  struct Place {
    int image = 0;
    int y = 0;
    int x = 0;
  };

  explicit TokenFinder(std::span<const MapTokens> images);

  int64_t tokens() const { return first_.back(); }
  // REQUIRES: 0 <= token < tokens().
  Place Find(int64_t token) const;

 private:
  std::span<const MapTokens> images_;
  std::vector<int64_t> first_;
};

// A kernel's taps: `side` x `side` places from (y0, x0) on; places outside are zeros. Each writes
// elements of the compute type to `to`.
struct Taps {
  int y0 = 0;
  int x0 = 0;
  int side = 1;
};
// Of pixels: (channel, row, column).
void GatherPixels(const PixelValues& pixels, Taps taps, Compute compute, std::byte* to);
// Of rows x [.., width] in fp32: (row, column, channel).
void GatherRows(const float* x, int64_t width, const MapTokens& tokens, Taps taps, Compute compute,
                std::byte* to);

}  // namespace longview::models
