// fairseq's dict.txt: one `symbol count` per line, id = zero-based line + 4, after <s> 0, <pad> 1,
// </s> 2 and <unk> 3. Text comes as symbols between spaces (the text8 and enwik8 language models
// use characters with `_` for the space, and bytes as decimal numbers).
// Thread-safe: immutable after loading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace longview::models {

// Bytes of a dict.txt that are read at most.
inline constexpr size_t kLargestDictionary = size_t{16} << 20;

class Dictionary {
 public:
  static constexpr int32_t kBos = 0, kPad = 1, kEos = 2, kUnk = 3;

  // `text` is the file. INVALID_ARGUMENT names the line; `#fairseq:overwrite` lines, which
  // redefine symbols, are refused.
  static absl::StatusOr<Dictionary> Parse(std::string_view text, std::string_view origin);

  // Ids of the symbols of one line, then kEos.
  std::vector<int32_t> EncodeLine(std::string_view symbols) const;

  // Calls `take` with the id of each symbol, in order, without kEos.
  void ForEachId(std::string_view symbols, absl::FunctionRef<void(int32_t)> take) const;

  // The symbol of an id; empty if there is none.
  std::string_view Symbol(int32_t id) const;

  int size() const { return static_cast<int>(symbols_.size()); }

 private:
  std::vector<std::string> symbols_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace longview::models
