// A safetensors file: whatever is accepted lists tensors that tile the data section.
#include <span>

#include "models/checkpoint/safetensors_header.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto entries = models::ParseSafetensorsHeader(file, file.size(), "model.safetensors");
  if (!entries.ok()) {
    FUZZ_PROMISE(entries.status().message().find("model.safetensors") == 0);
    return 0;
  }
  uint64_t at = 8;
  for (int i = 0; i < 8; ++i) at += uint64_t{data[i]} << (8 * i);
  for (const models::TensorEntry& entry : *entries) {
    uint64_t elements = 1;
    for (const int64_t extent : entry.shape) {
      FUZZ_PROMISE(extent >= 0);
      elements *= static_cast<uint64_t>(extent);
    }
    FUZZ_PROMISE(entry.begin == at && entry.end >= entry.begin && entry.end <= size);
    FUZZ_PROMISE((entry.end - entry.begin) * 8 ==
                 elements * static_cast<uint64_t>(models::DTypeBits(entry.dtype)));
    at = entry.end;
  }
  FUZZ_PROMISE(at == size);
  return 0;
}
