// Vectors of texts that were read before, kept in a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace longview::client {

// One file for each text, named by a hash of it and of all that its vectors depend on. Files are
// written whole under another name first, and have a checksum: any number of processes may use a
// folder at a time, and what is cut short or damaged counts as not there. Readable by the user
// alone.
//
// Thread-safe.
class VectorStore {
 public:
  // In `folder`, which Keep makes; Trim leaves so many bytes.
  VectorStore(std::string folder, int64_t most_bytes);

  // The name of a text's vectors. `settings` say what made them.
  static std::string KeyOf(std::string_view settings, std::string_view text);

  // The vectors of `count` pieces, one behind another, all of a size; nullopt if they are not
  // there. Counts as a use of them.
  std::optional<std::vector<float>> Find(const std::string& key, size_t count) const;

  // REQUIRES: count > 0, and that vectors.size() is a multiple of it. Errors say which file or
  // folder cannot be written, and why.
  absl::Status Keep(const std::string& key, size_t count, std::span<const float> vectors) const;

  // Removes the least recently used files until the others fit, and what interrupted writers left.
  void Trim() const;

 private:
  std::string PathOf(const std::string& key) const;

  std::string folder_;
  int64_t most_bytes_;
};

}  // namespace longview::client
