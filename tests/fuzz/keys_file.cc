// A file of API keys: what is accepted lets in exactly whom it names.
#include <string_view>

#include "server/security/key_set.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = longview::fuzz::AsText(data, size);
  const auto keys = longview::server::KeySet::Parse(text);
  if (!keys.ok()) {
    FUZZ_PROMISE(!keys.status().message().empty());
    return 0;
  }
  FUZZ_PROMISE(keys->size() > 0);
  FUZZ_PROMISE(keys->Find("") == nullptr);
  FUZZ_PROMISE(keys->Find(text) == nullptr || text.find('\n') == text.npos);
  return 0;
}
