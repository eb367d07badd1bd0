// The weights of a model directory, memory-mapped: one safetensors file or an index with shards, or
// the same of pickled files, which pickle.h reads without running what they hold.
//
//   Checkpoint::Open(directory)  ->  TensorView by name  ->  pack or convert  ->  Release
//
// Opening reads headers only. Tensors may lie at any byte: their data is not aligned to their
// element type, so callers copy (convert.h) instead of casting the pointer. Files may be shortened
// by others while they are loaded: loads use TensorView::Read, which then fails.
// Thread-safe: nothing changes after Open; Release may run beside readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/checkpoint/dtype.h"
#include "models/checkpoint/mapped_file.h"

namespace longview::models {

// Points into a Checkpoint and lives as long as it.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;       // Row-major; empty = scalar.
  const std::byte* data = nullptr;  // Little-endian, any alignment.
  size_t bytes = 0;
  const MappedFile* file = nullptr;  // File of the tensor's bytes; null: in memory alone.
  uint64_t offset = 0;               // First byte in `file`.

  int64_t elements() const;

  // Copies stored bytes from `first` on, without touching `data`. FAILED_PRECONDITION if the file
  // does not hold them any more. REQUIRES: they lie in the tensor.
  absl::Status Read(uint64_t first, std::span<std::byte> out) const;
};

std::string ShapeText(const std::vector<int64_t>& shape);  // "[50265, 768]"

class Checkpoint {
 public:
  // `path` is a directory with model.safetensors, model.safetensors.index.json, pytorch_model.bin
  // or pytorch_model.bin.index.json (the first of them wins, as in HuggingFace), a .safetensors,
  // .bin, .pt or .pth file, or an index file.
  // Errors name the file and what is wrong: NOT_FOUND if there are no weights,
  // FAILED_PRECONDITION with the command that converts for pickles that hold more than tensors,
  // INVALID_ARGUMENT for a file or index that breaks the format.
  static absl::StatusOr<Checkpoint> Open(const std::string& path);

  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  const TensorView* Find(std::string_view name) const;  // nullptr if there is none.
  uint64_t total_bytes() const;                         // Sum over all tensors.

  // Gives the pages of one tensor, or of all, back to the system once they were copied or
  // packed. They stay readable, at the price of reading the file again.
  void Release(const TensorView& tensor) const;
  void ReleaseAll() const;

 private:
  // Returns the names of the file's tensors.
  absl::StatusOr<std::set<std::string>> AddFile(const std::string& path);
  absl::Status AddIndex(const std::string& path);
  absl::StatusOr<std::vector<TensorView>> StoredViews(const MappedFile& file) const;
  absl::StatusOr<std::vector<TensorView>> PickledViews(const MappedFile& file);

  std::vector<std::unique_ptr<const MappedFile>> files_;               // Views point to them.
  std::vector<std::unique_ptr<const std::vector<std::byte>>> copies_;  // Views point to these too.
  std::map<std::string, TensorView, std::less<>> tensors_;
};

// The error for a directory without weights that can be read: names pickled files and how to
// convert them, or says that there is nothing. Never OK.
absl::Status NoWeightsError(const std::string& directory);

}  // namespace longview::models
