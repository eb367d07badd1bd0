// A Vision Longformer directory with random weights that serves images of any size: chunked
// attention with relative positions in every stage, as its detectors have it.
#pragma once

#include <string>
#include <vector>

namespace longview::bench {

struct VilStageShape {
  int blocks = 1;
  int heads = 3;
  int width = 96;
};

// The published tables; chunks of 7, patches of 4, 2, 2, 2, a global token in all but the last
// stage.
inline const std::vector<VilStageShape> kVilTiny = {
    {1, 1, 48}, {1, 3, 96}, {9, 3, 192}, {1, 6, 384}};
inline const std::vector<VilStageShape> kVilSmall = {
    {1, 3, 96}, {2, 3, 192}, {8, 6, 384}, {1, 12, 768}};

// Ends the process with a message on failure.
void WriteRandomVil(const std::string& directory, const std::vector<VilStageShape>& stages);

}  // namespace longview::bench
