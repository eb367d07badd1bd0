// A compressed body; the first byte picks the coding. However much it would inflate to, no more
// than the limit is made.
#include <string_view>

#include "server/http/inflate.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview::server;
  constexpr size_t kLimit = 1 << 16;
  const auto [kind, body] = longview::fuzz::SplitKind(longview::fuzz::AsText(data, size));
  const std::string_view coding = kind % 2 == 0 ? "gzip" : "deflate";
  FUZZ_PROMISE(IsCompressed(coding));
  const auto plain = Decompress(coding, body, kLimit);
  FUZZ_PROMISE(!plain.ok() || plain->size() <= kLimit);
  return 0;
}
