// A file mapped read-only into memory.
//
// Mapped bytes are read from disk when first touched; where the file was shortened meanwhile, the
// kernel ends the process with SIGBUS. Read has no such end.
// Thread-safe: nothing changes after Open; Release may run beside readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace longview::models {

class MappedFile {
 public:
  // Errors: NOT_FOUND; INVALID_ARGUMENT for an empty file, a git-lfs pointer, anything that
  // is not a regular file.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Copies the bytes from `offset` on. False if the file does not hold them any more.
  bool Read(uint64_t offset, std::span<std::byte> out) const;

  // `size` bytes from `offset` on; none if the file does not hold them, or not any more.
  std::optional<std::string> ReadBytes(uint64_t offset, uint64_t size) const;

  // Gives the whole pages inside `range` back to the system. They stay readable: the next
  // touch reads them from the file again. REQUIRES: `range` lies in bytes().
  void Release(std::span<const std::byte> range) const;

 private:
  MappedFile(std::string path, int descriptor, const std::byte* data, size_t size);

  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace longview::models
