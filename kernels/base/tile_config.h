// The AMX tile configuration every Longview kernel uses: all eight tiles 16 rows of 64 bytes.
//
// One thread, one configuration: load before the first tile instruction of a parallel region
// and release after the last, because the GEMM library uses the same registers.
#pragma once

#include <cstdint>

namespace longview::kernels {

// The operand of ldtilecfg, palette 1.
struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t column_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

inline constexpr TileConfig kFullTiles = {
    1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

}  // namespace longview::kernels
