// Pictures and expectations of tests/golden for the tests of models/image.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/image/raster.h"

namespace longview::models {

inline std::string GoldenPath(const std::string& inside) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  const std::string given = std::string(root != nullptr ? root : LONGVIEW_GOLDEN_DIR) + inside;
  // Pictures of our own are not among the shared fixtures.
  return std::filesystem::exists(given) ? given : LONGVIEW_GOLDEN_DIR + inside;
}

inline std::vector<uint8_t> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// A [height, width, 3] tensor of bytes.
inline Raster RasterOf(const Checkpoint& file, const std::string& name) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr || tensor->dtype != DType::kU8 || tensor->shape.size() != 3) {
    ADD_FAILURE() << "no picture " << name;
    return {};
  }
  Raster raster(static_cast<int>(tensor->shape[1]), static_cast<int>(tensor->shape[0]));
  std::transform(tensor->data, tensor->data + tensor->bytes, raster.rgb.begin(),
                 [](std::byte b) { return static_cast<uint8_t>(b); });
  return raster;
}

// Largest difference of any value; 256 if the sizes differ.
inline int LargestStep(const Raster& a, const Raster& b) {
  if (a.width != b.width || a.height != b.height) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i)
    largest = std::max(largest, std::abs(a.rgb[i] - b.rgb[i]));
  return largest;
}

inline std::vector<std::filesystem::path> FilesOf(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace longview::models
