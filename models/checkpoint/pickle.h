// A reader of the pickles in PyTorch's checkpoints: an interpreter that knows tensors, their
// storages, dictionaries, lists, tuples, texts and numbers, and refuses every other name and
// opcode. It calls nothing, so a hostile file can only fail. Work and memory are at most
// proportional to the pickle, nothing recurses.
// Thread-safe: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/dtype.h"

namespace longview::models {

inline constexpr size_t kMaxPickleBytes = size_t{16} << 20;
inline constexpr size_t kMaxPickleValues = 2'000'000;
inline constexpr size_t kMaxPickledTensors = 200'000;
inline constexpr size_t kMaxStorageKey = 64;

// A run of elements that the file keeps under `key`; `first` counts elements inside it.
struct PickledStorage {
  std::string key;
  DType dtype = DType::kF32;
  uint64_t elements = 0;
  uint64_t first = 0;
};

// A strided view of a storage that lies inside it; offset and strides count elements.
struct PickledTensor {
  PickledStorage storage;
  uint64_t offset = 0;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};
};

// A pickle that was read. PickleKind says which of the members below are filled.
struct Pickled {
  std::vector<std::pair<std::string, PickledTensor>> tensors;  // A state dict, in its order.
  std::vector<std::string> keys;                               // A list of texts.
  bool little_endian = false;  // A dictionary that says so (legacy files).
  int64_t number = 0;
  std::map<std::string, PickledStorage, std::less<>> storages;  // All that were named, by key.
  size_t bytes = 0;                                             // Length of the pickle.
};

enum class PickleKind { kStateDict, kTexts, kSystemFacts, kNumber };

// Reads one pickle from the beginning of `bytes`. INVALID_ARGUMENT (broken) or FAILED_PRECONDITION
// (what a state dict does not need, by name) that says what is wrong, without the file's name.
absl::StatusOr<Pickled> ReadPickle(std::string_view bytes, PickleKind kind);

}  // namespace longview::models
