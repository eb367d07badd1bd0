// State dicts as torch.save writes them: a zip archive (since PyTorch 1.6) with data.pkl and
// data/<key>, or, before, pickles with the storages behind them.
// Thread-safe: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/dtype.h"
#include "models/checkpoint/mapped_file.h"

namespace longview::models {

struct TorchEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;   // Empty = scalar.
  uint64_t begin = 0;           // Byte of the elements in the file, in row-major order.
  std::vector<std::byte> copy;  // Row-major elements where the file holds another order.
};

// Errors begin with the file's path and end with the command that converts once: INVALID_ARGUMENT
// for a broken file, FAILED_PRECONDITION for one that holds more than plain tensors.
absl::StatusOr<std::vector<TorchEntry>> ReadTorchFile(const MappedFile& file);

}  // namespace longview::models
