// Masks as clients read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace longview::server {

// {"size": [height, width], "counts": "..."}, as pycocotools reads it. Runs go down the columns,
// pixels outside of the object first. From the third on, a run is written as its difference to the
// one two before; numbers are groups of 5 bits, lowest first, each plus 48, 32 more where another
// group follows, negative ones in two's complement.
std::string CocoRle(std::span<const uint32_t> runs, int height, int width);

// One byte per pixel, row by row, 1 inside. REQUIRES: the runs add up to height * width.
void AppendMask(std::span<const uint32_t> runs, int height, int width, std::vector<std::byte>& out);

}  // namespace longview::server
