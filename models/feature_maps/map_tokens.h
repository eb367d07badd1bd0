// The tokens of an image's feature map among the rows of a ragged batch, and what convolutions read
// of them.
//
// Rows of an image: [globals | local tokens], local tokens square by square where a stage attends
// so, else row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/dense/compute.h"
#include "models/feature_maps/shape_cache.h"
#include "models/image/pipeline.h"

namespace longview::models {

struct MapTokens {
  ImageSize map;
  int32_t row0 = 0;  // First row, the first global's.
  int32_t rows = 0;  // Globals and local tokens.
  // By row-major position: the row behind row0. Images of one size share it.
  std::shared_ptr<const std::vector<int32_t>> places;

  int64_t count() const { return static_cast<int64_t>(places->size()); }
  int64_t row(int64_t position) const { return row0 + (*places)[position]; }
};

// The images of a batch in one stage, one after the other. `square`: side of the squares that
// tokens lie in one after the other; 0: row by row.
std::vector<MapTokens> PlaceImages(ShapeCache& shapes, size_t stage,
                                   std::span<const ImageSize> maps, int globals, int square);

// Images that go through a block together, as plans of attention see them: equal bands have equal
// plans, wherever in a batch they lie.
struct BandImages {
  explicit BandImages(std::span<const MapTokens> images);

  struct Image {
    int32_t row0;  // From the band's first row on.
    ImageSize map;
    int32_t size;  // Index of its size in `sizes`.
  };
  std::vector<Image> images;
  std::vector<ImageSize> maps;   // Map sizes of the images.
  std::vector<ImageSize> sizes;  // Each once, in the order they come.
  int64_t row0 = 0;              // First row of the batch.
  int64_t rows = 0;
};

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
// Gathers pixels: (channel, row, column).
void GatherPixels(const PixelValues& pixels, Taps taps, Compute compute, std::byte* to);
// Gathers rows of x [.., width] in fp32: (row, column, channel).
void GatherRows(const float* x, int64_t width, const MapTokens& tokens, Taps taps, Compute compute,
                std::byte* to);

// Lists for a device: the rows that taps are at, row by row, -1 outside of the map. Returns the end
// of the list.
int32_t* WriteTaps(const MapTokens& tokens, Taps taps, int32_t* to);
// For every place that a convolution leaves of the map.
int32_t* WriteTaps(const MapTokens& tokens, ImageSize places, int side, int stride, int padding,
                   int32_t* to);

}  // namespace longview::models
