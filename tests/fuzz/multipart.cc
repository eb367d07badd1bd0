// A multipart/form-data body under a content type (before the first NUL): parts hold no more than
// was sent.
#include "server/http/v1/multipart.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [type, body] = longview::fuzz::SplitAtNul(longview::fuzz::AsText(data, size));
  const auto parts = longview::server::ParseMultipart(type, body);
  if (!parts.ok()) return 0;
  size_t bytes = 0;
  for (const auto& [name, content] : *parts) bytes += name.size() + content.size();
  FUZZ_PROMISE(bytes <= body.size());
  return 0;
}
