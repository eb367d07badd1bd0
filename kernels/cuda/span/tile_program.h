// Program that runs an item of kTiles: chosen by the element, on any machine.
#pragma once

#include <type_traits>

#include "kernels/cuda/span/span_float_tile.h"
#include "kernels/cuda/span/span_tile.h"

namespace longview::kernels::cuda {

template <class Machine, int kD, Element kElement>
using TileProgram = std::conditional_t<kElement == Element::kFloat32, SpanFloatTile<Machine, kD>,
                                       SpanTile<Machine, kD, kElement>>;

template <int kD, Element kElement>
using TileProgramShared =
    std::conditional_t<kElement == Element::kFloat32, FloatTileShared<kD>, TileShared<kD>>;

}  // namespace longview::kernels::cuda
