// The tokens of feature maps: a convolution over the maps before, or over pictures, a LayerNorm
// where there is one, and sums by place.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/cuda/vision/maps_api.h"
#include "models/feature_maps/map_tokens.h"
#include "models/image/pipeline.h"
#include "models/ops/backend.h"

namespace longview::models {

// Sums that tokens of a map get by their place: by row [height, width / 2] in the first half of a
// token, by column [width, width / 2] in the other.
struct MapPositions {
  std::span<const float> down, across;
};

// A convolution that makes the tokens of maps from the maps before, or from pictures.
struct TokenMaps {
  std::span<const MapTokens> images;
  std::span<const MapTokens> before;       // Empty: pictures.
  std::vector<ImageSize> sizes;            // The pictures'.
  std::vector<const PixelValues*> pixels;  // Null while bytes are counted.
  int channels = 3;
  int width = 0;  // Elements of a token.
  int side = 1;   // The kernel's.
  int stride = 1;
  int padding = 0;                                // Zeros around the maps.
  std::function<MapPositions(size_t)> positions;  // By image, asked when it is needed; or none.
};

// Staged tokens. Borrows the maps.
struct TokensRef {
  const TokenMaps* maps = nullptr;
  int64_t tokens = 0;
  int64_t columns = 0;  // Elements that a token is made of; pixels on a device with zeros behind.
  // On a device: pixels of all pictures; null: tokens are made of rows of a map.
  const float* pixels = nullptr;
  const kernels::cuda::PixelImage* pictures = nullptr;  // Begin and sizes of each picture.
  const int32_t* taps = nullptr;         // [tokens, side^2] rows that a token is made of.
  const int32_t* rows = nullptr;         // [tokens], row-major over the maps, image after image.
  const float* down = nullptr;           // Positions of all map sizes, down; null without.
  const float* across = nullptr;         // Positions of all map sizes, across; null without.
  const int32_t* down_rows = nullptr;    // [tokens]
  const int32_t* across_rows = nullptr;  // [tokens]
  int64_t most = 0;                      // Tokens of the largest image.
};
TokensRef StageTokens(Backend& backend, const TokenMaps& maps);

namespace ops {

struct MakeTokens {
  const TokensRef& tokens;
  // Columns are (row, column, channel) of the kernel, of pixels (channel, row, column).
  const Weight& weight;
  const NormWeight* norm;  // Null: none.
  Rows before;             // [.., channels] fp32; not given: pictures.
  Rows x;                  // [rows, d] fp32

  OpWork Work() const {
    return {.linear = static_cast<double>(tokens.tokens * tokens.columns * x.width),
            .rows = 2 * x.elements()};
  }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
