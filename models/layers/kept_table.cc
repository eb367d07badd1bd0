#include "models/layers/kept_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/convert.h"

namespace longview::models {
namespace {

// Copies memory into the file through the kernel, which answers EFAULT for pages that are gone,
// where a read of ours would raise SIGBUS. 0 or an errno.
int WriteWhole(int file, const char* from, size_t size) {
  while (size > 0) {
    const ssize_t written = write(file, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    from += written;
    size -= static_cast<size_t>(written);
  }
  return 0;
}

// 0 or an errno.
int ReplacePages(char* begin, size_t size) {
  const int file = memfd_create("longview-table", MFD_CLOEXEC);
  if (file < 0) return errno;
  int error = WriteWhole(file, begin, size);
  if (error == 0 && mmap(begin, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED) {
    error = errno;
  }
  close(file);
  return error;
}

}  // namespace

absl::Status OwnPages(const TensorView& tensor) {
  if (tensor.bytes == 0) return absl::OkStatus();
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(tensor.data);
  const uintptr_t begin = first / page * page;
  const uintptr_t end = (first + tensor.bytes + page - 1) / page * page;
  const int error = ReplacePages(reinterpret_cast<char*>(begin), end - begin);
  // The kernel mapped pages of the file around those it read.
  if (tensor.file != nullptr) tensor.file->Release(tensor.file->bytes());
  if (error == 0) return absl::OkStatus();
  if (error == EFAULT) {
    return absl::FailedPreconditionError(absl::StrCat(
        "tensor \"", tensor.name, "\": its ", tensor.bytes,
        " bytes cannot be read; was the file of the weights shortened since it was opened?"));
  }
  return absl::ResourceExhaustedError(absl::StrCat("tensor \"", tensor.name, "\": no memory for ",
                                                   tensor.bytes, " bytes: ", std::strerror(error)));
}

void KeepTable(const TensorView* table, WeightLoader& load) {
  if (table == nullptr) return;
  load.CountBytes(static_cast<double>(table->bytes));
  if (!load.reads()) return;
  load.Fail(OwnPages(*table));
  if (load.ok()) load.Fail(CheckFinite(*table));
}

}  // namespace longview::models
