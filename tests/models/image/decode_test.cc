#include "models/image/decode.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <random>
#include <utility>

#include "models/image/codec.h"
#include "models/image/orientation.h"
#include "models/stop_scope.h"
#include "tests/models/image/picture_files.h"

namespace longview::models {
namespace {

constexpr DecodeLimits kLimits;

Checkpoint Expectations() {
  auto file = Checkpoint::Open(GoldenPath("/images/expected.safetensors"));
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

std::vector<uint8_t> Picture(const std::string& name) {
  return ReadBytes(GoldenPath("/images/pictures/") + name);
}

uint32_t Crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

bool IsMarked(const absl::Status& status) {
  return status.GetPayload({kUndecodableImage.data(), kUndecodableImage.size()}).has_value();
}

// Decoders of another version may differ by one level in lossy pictures.
TEST(DecodeTest, EveryKindOfPictureIsWhatPillowMakesOfIt) {
  const Checkpoint expected = Expectations();
  for (const auto& path : FilesOf(GoldenPath("/images/pictures"))) {
    SCOPED_TRACE(path.filename());
    const std::vector<uint8_t> bytes = ReadBytes(path);
    const auto picture = DecodeImage(bytes, kLimits, /*rotate=*/false);
    ASSERT_TRUE(picture.ok()) << picture.status();
    const bool lossless = path.extension() == ".png" || path.stem().string().find("loss") == 0;
    EXPECT_LE(LargestStep(*picture, RasterOf(expected, path.stem())), lossless ? 0 : 1);
    const std::string seen = path.stem().string() + ".seen";
    if (expected.Find(seen) == nullptr) continue;
    const auto turned = DecodeImage(bytes, kLimits, /*rotate=*/true);
    ASSERT_TRUE(turned.ok()) << turned.status();
    EXPECT_LE(LargestStep(*turned, RasterOf(expected, seen)), 1);
  }
}

TEST(DecodeTest, HeadersSayWhatThePictureIs) {
  const auto header = ReadImageHeader(Picture("turned6.jpg"), kLimits);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->format, ImageFormat::kJpeg);
  EXPECT_EQ(header->width, 23);
  EXPECT_EQ(header->height, 17);
  EXPECT_EQ(header->orientation, 6);
  EXPECT_EQ(ReadImageHeader(Picture("turned_png.png"), kLimits)->orientation, 6);
  EXPECT_EQ(ReadImageHeader(Picture("turned_webp.webp"), kLimits)->orientation, 8);
  EXPECT_EQ(ReadImageHeader(Picture("rgb.png"), kLimits)->orientation, 1);
}

TEST(DecodeTest, EndsWhenNobodyWaits) {
  const std::atomic<bool> stop = true;
  const StopScope scope(&stop);
  for (const char* name : {"rgb.png", "turned6.jpg", "turned_webp.webp"}) {
    EXPECT_EQ(DecodeImage(Picture(name), kLimits, /*rotate=*/false).status().code(),
              absl::StatusCode::kCancelled)
        << name;
  }
}

TEST(DecodeTest, TheLimitIsCheckedOnTheHeader) {
  // A PNG header that claims 60,000 x 60,000 pixels.
  std::vector<uint8_t> bomb = Picture("rgb.png");
  for (const int at : {16, 20}) {
    bomb[at + 2] = 60000 >> 8;
    bomb[at + 3] = 60000 & 255;
  }
  const uint32_t checksum = Crc32(std::span(bomb).subspan(12, 17));
  for (int i = 0; i < 4; ++i) bomb[29 + i] = static_cast<uint8_t>(checksum >> (24 - 8 * i));
  for (const size_t left : {bomb.size() - 60, bomb.size()}) {
    const auto decoded = DecodeImage(std::span(bomb).first(left), kLimits, false);
    EXPECT_EQ(decoded.status().message(),
              "image: 60000 x 60000 is 3600000000 pixels, the limit is 67108864");
  }

  const auto small = DecodeImage(Picture("photo.jpg"), {.max_pixels = 390}, false);
  EXPECT_EQ(small.status().message(), "image: 23 x 17 is 391 pixels, the limit is 390");
  EXPECT_FALSE(IsMarked(small.status()));
  EXPECT_TRUE(DecodeImage(Picture("photo.jpg"), {.max_pixels = 391}, false).ok());
}

TEST(DecodeTest, OtherBytesAreRefused) {
  for (const std::string text : {"", "GIF89a", "\xFF\xD8", "RIFF\1\2\3\4WAVE", "%PDF-1.7"}) {
    const auto decoded =
        DecodeImage(std::vector<uint8_t>(text.begin(), text.end()), kLimits, false);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_TRUE(IsMarked(decoded.status())) << decoded.status();
  }
}

// Each of the texts is as long as one may be, and a thousandth of that in the file.
TEST(DecodeTest, CompressedTextsOfAPngHaveABound) {
  const std::vector<uint8_t> text(size_t{1} << 20);
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, text.data(), text.size()),
            Z_OK);
  const std::string data = std::string("XML:com.adobe.xmp\0\1\0\0\0", 22) + packed.substr(0, size);
  std::vector<uint8_t> chunk;
  const auto append = [&](uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8)
      chunk.push_back(static_cast<uint8_t>(number >> shift));
  };
  append(static_cast<uint32_t>(data.size()));
  for (const char c : "iTXt" + data) chunk.push_back(static_cast<uint8_t>(c));
  append(Crc32(std::span(chunk).subspan(4)));
  const std::vector<uint8_t> picture = Picture("rgb.png");
  constexpr ptrdiff_t kBehindHeader = 33;
  const auto with = [&](int texts) {
    std::vector<uint8_t> bytes(picture.begin(), picture.begin() + kBehindHeader);
    for (int i = 0; i < texts; ++i) bytes.insert(bytes.end(), chunk.begin(), chunk.end());
    bytes.insert(bytes.end(), picture.begin() + kBehindHeader, picture.end());
    return DecodeImage(bytes, kLimits, false);
  };
  EXPECT_TRUE(with(64).ok()) << with(64).status();
  const absl::Status refused = with(65).status();
  EXPECT_TRUE(IsMarked(refused)) << refused;
  EXPECT_NE(refused.message().find("compressed texts of more than 64 MiB"), refused.message().npos);
}

TEST(DecodeTest, OddPicturesAreWhatPillowMakesOfThem) {
  const auto expected = Checkpoint::Open(GoldenPath("/images/odd.safetensors"));
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const auto& path : FilesOf(GoldenPath("/images/odd"))) {
    SCOPED_TRACE(path.filename());
    const auto picture = DecodeImage(ReadBytes(path), kLimits, /*rotate=*/true);
    EXPECT_TRUE(picture.ok()) << picture.status();
    if (!picture.ok()) continue;
    const int step = LargestStep(*picture, RasterOf(*expected, path.stem()));
    EXPECT_LE(step, path.extension() == ".jpg" ? 1 : 0);
  }
}

TEST(DecodeTest, TruncatedPicturesOpenWherePillowOpensThem) {
  const auto expected = Checkpoint::Open(GoldenPath("/images/odd.safetensors"));
  ASSERT_TRUE(expected.ok()) << expected.status();
  int pictures = 0;
  for (const auto& [name, opens] : expected->tensors()) {
    if (name.find("opens.") != 0) continue;
    const std::vector<uint8_t> whole = Picture(name.substr(6));
    ASSERT_EQ(opens.bytes, whole.size() + 1) << name;
    for (size_t size = 0; size <= whole.size(); ++size) {
      const auto decoded =
          DecodeImage(std::vector<uint8_t>(whole.begin(), whole.begin() + size), kLimits, true);
      EXPECT_EQ(decoded.ok(), opens.data[size] != std::byte{0})
          << name << " cut to " << size << " of " << whole.size() << ": " << decoded.status();
      EXPECT_TRUE(decoded.ok() || IsMarked(decoded.status())) << decoded.status();
    }
    ++pictures;
  }
  EXPECT_EQ(pictures, 10);
}

TEST(DecodeTest, DamagedPicturesGiveAPictureOrAnError) {
  std::mt19937 random(7);
  int refused = 0;
  for (const auto& path : FilesOf(GoldenPath("/images/pictures"))) {
    const std::vector<uint8_t> whole = ReadBytes(path);
    for (int round = 0; round < 40; ++round) {
      std::vector<uint8_t> bytes = whole;
      for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
        bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
      }
      const auto decoded = DecodeImage(bytes, {.max_pixels = 1 << 20}, true);
      if (!decoded.ok()) {
        ++refused;
        EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
      } else {
        EXPECT_EQ(decoded->rgb.size(), size_t{3} * decoded->width * decoded->height);
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(OrientedTest, TurnsBackAndForth) {
  Raster picture(3, 2);
  for (size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = static_cast<uint8_t>(i);
  const int inverse[] = {0, 1, 2, 3, 4, 5, 8, 7, 6};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Raster turned = Oriented(picture, orientation);
    EXPECT_EQ(turned.width, orientation >= 5 ? 2 : 3);
    EXPECT_EQ(LargestStep(Oriented(turned, inverse[orientation]), picture), 0) << orientation;
  }
}

}  // namespace
}  // namespace longview::models
