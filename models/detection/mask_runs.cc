#include "models/detection/mask_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace longview::models {
namespace {

// Mapping of a pixel's index to the mask pixels under its centre, along one axis.
struct Scale {
  float begin, extent;
  int side;

  float At(int index) const {
    return (static_cast<float>(index) + 0.5f - begin) / extent * static_cast<float>(side) - 0.5f;
  }
  // The first pixel in [0, size] whose place is at least `place`.
  int First(float place, int size) const {
    const float side_f = static_cast<float>(side);
    const float guess = std::ceil((place + 0.5f) / side_f * extent + begin - 0.5f);
    int index = static_cast<int>(std::clamp(guess, 0.0f, static_cast<float>(size)));
    while (index > 0 && At(index - 1) >= place) --index;
    while (index < size && At(index) < place) ++index;
    return index;
  }
};

// Collects pixels of alternating kind.
class Runs {
 public:
  void Add(bool inside, int64_t count) {
    if (count <= 0) return;
    if (inside != inside_) {
      runs_.push_back(0);
      inside_ = inside;
    }
    runs_.back() += static_cast<uint32_t>(count);
  }
  std::vector<uint32_t> Take() { return std::move(runs_); }

 private:
  std::vector<uint32_t> runs_ = {0};
  bool inside_ = false;
};

// One column: `profile` is the mask at the column's place, with a zero before and behind. Between
// two mask pixels values are linear, so a change is found by halving.
void AddColumn(std::span<const float> profile, const Scale& down, int height, float threshold,
               Runs& runs) {
  const int side = static_cast<int>(profile.size()) - 2;
  int row = down.First(-1.0f, height);
  runs.Add(false, row);
  for (int cell = -1; cell < side && row < height; ++cell) {
    const int end = down.First(static_cast<float>(cell + 1), height);
    const float low = profile[cell + 1], high = profile[cell + 2];
    const auto inside = [&](int i) {
      const float part = down.At(i) - static_cast<float>(cell);
      return low * (1 - part) + high * part >= threshold;
    };
    if (end <= row) continue;
    const bool first = inside(row);
    int from = row + 1, to = end;  // The change, if there is one, is in [from, to].
    if (inside(end - 1) == first) from = end;
    while (from < to) {
      const int middle = from + (to - from) / 2;
      if (inside(middle) == first) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    runs.Add(first, from - row);
    runs.Add(!first, end - from);
    row = end;
  }
  runs.Add(false, height - row);
}

}  // namespace

std::vector<uint32_t> MaskRuns(std::span<const float> mask, int side, const kernels::Box& box,
                               ImageSize picture, float threshold) {
  const Scale across = {box.x0, box.x1 - box.x0, side}, down = {box.y0, box.y1 - box.y0, side};
  const int first = across.First(-1.0f, picture.width);
  const int last = across.First(static_cast<float>(side), picture.width);
  Runs runs;
  runs.Add(false, int64_t{first} * picture.height);
  std::vector<float> profile(side + 2);
  for (int column = first; column < last; ++column) {
    const float place = across.At(column);
    const int left = static_cast<int>(std::floor(place));
    const float part = place - static_cast<float>(left);
    for (int row = 0; row < side; ++row) {
      const float* values = mask.data() + static_cast<size_t>(row) * side;
      const float a = left >= 0 && left < side ? values[left] : 0;
      const float b = left + 1 >= 0 && left + 1 < side ? values[left + 1] : 0;
      profile[row + 1] = a * (1 - part) + b * part;
    }
    AddColumn(profile, down, picture.height, threshold, runs);
  }
  runs.Add(false, int64_t{picture.width - last} * picture.height);
  return runs.Take();
}

}  // namespace longview::models
