// A pickled checkpoint: whatever is accepted lists tensors that lie in the file, or copies of them.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "models/checkpoint/mapped_file.h"
#include "models/checkpoint/torch_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  const int memory = memfd_create("checkpoint", 0);
  FUZZ_PROMISE(memory >= 0 && write(memory, data, size) == static_cast<ssize_t>(size));
  const auto file = models::MappedFile::Open("/proc/self/fd/" + std::to_string(memory));
  close(memory);
  if (!file.ok()) return 0;
  const auto entries = models::ReadTorchFile(*file);
  if (!entries.ok()) {
    FUZZ_PROMISE(entries.status().message().find("/proc/self/fd/") == 0);
    return 0;
  }
  for (const models::TorchEntry& entry : *entries) {
    uint64_t bytes = static_cast<uint64_t>(models::DTypeBits(entry.dtype)) / 8;
    for (const int64_t extent : entry.shape) {
      FUZZ_PROMISE(extent >= 0);
      bytes *= static_cast<uint64_t>(extent);
    }
    if (entry.copy.empty()) {
      FUZZ_PROMISE(entry.begin <= size && bytes <= size - entry.begin);
    } else {
      FUZZ_PROMISE(entry.copy.size() == bytes);
    }
  }
  return 0;
}
