#include "server/engine/image_header.h"

#include <initializer_list>
#include <string>

#include "gtest/gtest.h"

namespace longview::server {
namespace {

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string Padded(std::string bytes) {
  bytes.resize(40);
  return bytes;
}

TEST(HeaderPixels, OfEveryFormat) {
  const std::string png = Bytes({0x89, 'P', 'N', 'G', 13, 10, 26,   10, 0, 0, 0,    13,
                                 'I',  'H', 'D', 'R', 0,  0,  0x20, 0,  0, 0, 0x10, 1});
  EXPECT_EQ(HeaderPixels(Padded(png)), 8192u * 4097u);
  const std::string jpeg = Bytes({0xFF, 0xD8, 0xFF, 0xE0, 0, 4,  1, 1,    0xFF, 0xFF, 0xC4, 0,
                                  3,    1,    0xFF, 0xC2, 0, 17, 8, 0x01, 0x02, 0x03, 0x04});
  EXPECT_EQ(HeaderPixels(Padded(jpeg)), 0x102u * 0x304u);
  const std::string riff = std::string("RIFF") + std::string(4, '\0') + "WEBP";
  const std::string lossy = riff + "VP8 " + std::string(10, '\0') + Bytes({0x10, 0, 0x20, 0});
  EXPECT_EQ(HeaderPixels(Padded(lossy)), 16u * 32u);
  const std::string lossless = riff + "VP8L" + std::string(4, '\0') + Bytes({0x2f, 0x0F, 0xC0, 7});
  EXPECT_EQ(HeaderPixels(Padded(lossless)), 16u * 32u);
  const std::string extended = riff + "VP8X" + std::string(8, '\0') + Bytes({9, 0, 0, 19, 0, 0});
  EXPECT_EQ(HeaderPixels(Padded(extended)), 200u);
}

TEST(HeaderPixels, OfNothing) {
  for (const std::string bytes : {"", "x", "\xFF\xD8", "\x89PNG", "GIF89a"}) {
    EXPECT_EQ(HeaderPixels(bytes), 0u);
    EXPECT_EQ(HeaderPixels(Padded(bytes)), 0u);
  }
  EXPECT_EQ(HeaderPixels(Padded("\xFF\xD8\xFF\xE0") + std::string(100, '\xFF')), 0u);
}

}  // namespace
}  // namespace longview::server
