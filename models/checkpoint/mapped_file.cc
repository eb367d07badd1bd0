#include "models/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Take() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

constexpr std::string_view kLfsPointer = "version https://git-lfs";

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // Looked at before opening: opening a FIFO would block.
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    const int error = errno;
    const std::string message = absl::StrCat(path, ": ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  Descriptor file(path);
  if (file.get() < 0 || fstat(file.get(), &info) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": the file is empty"));

  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": cannot map ", size, " bytes: ", std::strerror(errno)));
  }
  MappedFile mapped(path, file.Take(), static_cast<const std::byte*>(data), size);
  std::array<std::byte, kLfsPointer.size()> beginning;
  if (size >= beginning.size() && mapped.Read(0, beginning) &&
      std::memcmp(beginning.data(), kLfsPointer.data(), beginning.size()) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is a git-lfs pointer, not the weights; run `git lfs pull` in that directory"));
  }
  return mapped;
}

MappedFile::MappedFile(std::string path, int descriptor, const std::byte* data, size_t size)
    : path_(std::move(path)), descriptor_(descriptor), data_(data), size_(size) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) close(descriptor_);
}

bool MappedFile::Read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return true;
}

std::optional<std::string> MappedFile::ReadBytes(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset) return std::nullopt;
  std::string bytes(size, '\0');
  if (!Read(offset, std::as_writable_bytes(std::span(bytes)))) return std::nullopt;
  return bytes;
}

void MappedFile::Release(std::span<const std::byte> range) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + range.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace longview::models
