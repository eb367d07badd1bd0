// Greedy non-maximum suppression: a box goes if a better one that stays overlaps it too much.
//
// Stateless: thread-safe. All memory is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/vision/box.h"

namespace longview::kernels {

// Floats that SuppressOverlaps needs for `boxes` boxes.
inline constexpr size_t SuppressionFloats(size_t boxes) { return 6 * boxes; }

// `boxes` are best first. Writes the places of those that stay, ascending, and returns how many.
// A box goes if intersection / union with one that stays is above `threshold`; two boxes without
// area (0 / 0) leave each other alone.
// REQUIRES: kept.size() >= boxes.size(), workspace.size() >= SuppressionFloats(boxes.size()).
size_t SuppressOverlaps(std::span<const Box> boxes, float threshold, std::span<int32_t> kept,
                        std::span<float> workspace);

// Reference of SuppressOverlaps, box against box, with the same bits. No workspace.
size_t SuppressOverlapsRef(std::span<const Box> boxes, float threshold, std::span<int32_t> kept);

// Intersection over union; 0 for two boxes without area.
float Overlap(const Box& a, const Box& b);

}  // namespace longview::kernels
