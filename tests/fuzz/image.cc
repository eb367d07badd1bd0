// An encoded picture: a header or a refusal, and pixels of the header's size or a refusal.
#include <span>

#include "models/image/decode.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  const models::ImageBytes bytes(data, size);
  const models::DecodeLimits limits{.max_pixels = 1 << 18};
  const auto header = models::ReadImageHeader(bytes, limits);
  const auto picture = models::DecodeImage(bytes, limits, /*rotate=*/true);
  if (!header.ok()) {
    FUZZ_PROMISE(!picture.ok());
    FUZZ_PROMISE(header.status().message().find("image: ") == 0);
    return 0;
  }
  FUZZ_PROMISE(header->orientation >= 1 && header->orientation <= 8);
  if (!picture.ok()) return 0;
  const bool turned = header->orientation >= 5;
  FUZZ_PROMISE(picture->width == (turned ? header->height : header->width));
  FUZZ_PROMISE(picture->height == (turned ? header->width : header->height));
  FUZZ_PROMISE(picture->rgb.size() == size_t{3} * header->width * header->height);
  return 0;
}
