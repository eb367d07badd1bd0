// PNG by libpng. Its errors arrive by longjmp: between setjmp and the end of a call no object
// with a destructor comes to life.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/undecodable.h"
#include "models/stop_scope.h"

namespace longview::models {
namespace {

constexpr png_uint_32 kMaxPngSide = 1'000'000;
constexpr png_alloc_size_t kMaxChunkBytes = 8u << 20;
constexpr png_uint_32 kMaxKeptChunks = 128;

// One file being read. Freed by its destructor, whatever libpng did.
struct Reader {
  explicit Reader(ImageBytes bytes) : left(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) return;
    png_set_read_fn(png, this, OnRead);
    png_set_user_limits(png, kMaxPngSide, kMaxPngSide);
    png_set_chunk_malloc_max(png, kMaxChunkBytes);
    png_set_chunk_cache_max(png, kMaxKeptChunks);
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;

  static void OnError(png_structp png, png_const_charp message) {
    auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
    std::snprintf(reader->message, sizeof reader->message, "%s", message);
    std::longjmp(reader->jump, 1);
  }
  static void OnWarning(png_structp, png_const_charp) {}
  static void OnRead(png_structp png, png_bytep out, size_t count) {
    auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
    if (!CheckStop().ok()) png_error(png, "nobody waits for it any more");
    if (count > reader->left.size()) png_error(png, "the file ends too early");
    std::memcpy(out, reader->left.data(), count);
    reader->left = reader->left.subspan(count);
  }

  absl::Status Broken() const { return Undecodable(absl::StrCat("image: PNG: ", message)); }

  ImageBytes left;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump;
  char message[128] = "";
};

bool ReadInfo(Reader& reader) {
  if (setjmp(reader.jump) != 0) return false;
  png_read_info(reader.png, reader.info);
  return true;
}

// Asks libpng for RGB or one gray channel, 8 bits, or 16 bits where gray is to be clipped.
void ChooseForm(Reader& reader, bool wide_gray) {
  png_set_expand_gray_1_2_4_to_8(reader.png);
  png_set_palette_to_rgb(reader.png);
  if (!wide_gray) png_set_strip_16(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
}

bool ReadRows(Reader& reader, bool wide_gray, png_bytepp rows) {
  if (setjmp(reader.jump) != 0) return false;
  ChooseForm(reader, wide_gray);
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

// Spreads a row of gray, one or two bytes a pixel, which lies at its beginning, over its pixels.
void SpreadGray(uint8_t* row, int width, bool wide) {
  for (int x = width - 1; x >= 0; --x) {
    const uint8_t gray = wide ? (row[2 * x] != 0 ? 255 : row[2 * x + 1]) : row[x];
    std::fill_n(row + 3 * x, 3, gray);
  }
}

}  // namespace

absl::StatusOr<ImageHeader> ReadPngHeader(ImageBytes bytes) {
  Reader reader(bytes);
  if (reader.info == nullptr) return absl::ResourceExhaustedError("image: no memory for PNG");
  if (!ReadInfo(reader)) return reader.Broken();
  return ImageHeader{.width = static_cast<int>(png_get_image_width(reader.png, reader.info)),
                     .height = static_cast<int>(png_get_image_height(reader.png, reader.info))};
}

absl::Status DecodePng(ImageBytes bytes, Raster& out) {
  Reader reader(bytes);
  if (reader.info == nullptr) return absl::ResourceExhaustedError("image: no memory for PNG");
  if (!ReadInfo(reader)) return reader.Broken();
  const int type = png_get_color_type(reader.png, reader.info);
  const bool gray = (type & PNG_COLOR_MASK_COLOR) == 0;
  // Pillow reads gray of 16 bits whole and clips it; with alpha it keeps the high byte.
  const bool wide = type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(reader.png, reader.info) == 16;
  std::vector<png_bytep> rows(out.height);
  for (int y = 0; y < out.height; ++y) rows[y] = out.row(y);
  if (!ReadRows(reader, wide, rows.data())) return reader.Broken();
  for (int y = 0; gray && y < out.height; ++y) SpreadGray(out.row(y), out.width, wide);
  return absl::OkStatus();
}

}  // namespace longview::models
