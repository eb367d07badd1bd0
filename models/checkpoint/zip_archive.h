// The entries of a zip archive as torch.save writes it: stored, not compressed.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/checkpoint/mapped_file.h"

namespace longview::models {

// Bytes of the file, end exclusive.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
};

inline constexpr uint64_t kMaxZipDirectory = 100'000'000;

// Whether the file begins as such an archive does.
bool IsZipArchive(const MappedFile& file);

// The bytes of each entry's data by its name. Ranges lie inside the file, in front of the central
// directory, and do not overlap. INVALID_ARGUMENT, without the name of the file: a broken archive,
// an entry that is compressed or encrypted.
absl::StatusOr<std::map<std::string, ByteRange, std::less<>>> ReadZipEntries(
    const MappedFile& file);

}  // namespace longview::models
