// PNG by libpng. Its errors arrive by longjmp: between setjmp and the end of a call no object
// with a destructor comes to life.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/orientation.h"
#include "models/image/png_notes.h"
#include "models/image/undecodable.h"
#include "models/stop_scope.h"

namespace longview::models {
namespace {

constexpr png_uint_32 kMaxPngSide = 1'000'000;
constexpr png_alloc_size_t kMaxChunkBytes = 8u << 20;
constexpr png_uint_32 kMaxKeptChunks = 128;

// A PNG file being read, pushed into libpng: as many rows arrive as the bytes hold, and a file
// whose last pixel is there may end anywhere behind it. Freed by its destructor, whatever libpng
// did.
struct PngReader {
  explicit PngReader(ImageBytes given, Raster* raster = nullptr) : bytes(given), out(raster) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) return;
    png_set_progressive_read_fn(png, this, OnInfo, OnRow, nullptr);
    png_set_user_limits(png, kMaxPngSide, kMaxPngSide);
    png_set_chunk_malloc_max(png, kMaxChunkBytes);
    png_set_chunk_cache_max(png, kMaxKeptChunks);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;

  static PngReader& Of(png_structp png) {
    return *static_cast<PngReader*>(png_get_progressive_ptr(png));
  }
  static void OnError(png_structp png, png_const_charp message) {
    auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(reader->message, sizeof reader->message, "%s", message);
    std::longjmp(reader->jump, 1);
  }
  static void OnWarning(png_structp, png_const_charp) {}
  static void OnInfo(png_structp png, png_infop);
  static void OnRow(png_structp png, png_bytep row, png_uint_32 y, int pass);

  absl::Status Broken() const { return Undecodable(absl::StrCat("image: PNG: ", message)); }
  bool gray() const { return (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) == 0; }
  // Pillow reads gray of 16 bits whole and clips it; with alpha it keeps the high byte.
  bool wide_gray() const {
    return png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY &&
           png_get_bit_depth(png, info) == 16;
  }

  ImageBytes bytes;
  Raster* out;  // None: the header is enough.
  png_structp png = nullptr;
  png_infop info = nullptr;
  bool has_info = false, whole = false;
  bool is_gray = false, is_wide = false;
  std::jmp_buf jump;
  char message[128] = "the file ends too early";
};

// The first pixels follow. Asks libpng for RGB or one gray channel, 8 bits, or 16 bits where gray
// is to be clipped.
void PngReader::OnInfo(png_structp png, png_infop) {
  PngReader& reader = Of(png);
  reader.has_info = true;
  if (reader.out == nullptr) {
    png_process_data_pause(png, 0);
    return;
  }
  reader.is_gray = reader.gray();
  reader.is_wide = reader.wide_gray();
  png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);  // Pillow ignores those of pixels.
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_palette_to_rgb(png);
  if (!reader.is_wide) png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_start_read_image(png);
}

void PngReader::OnRow(png_structp png, png_bytep row, png_uint_32 y, int pass) {
  PngReader& reader = Of(png);
  if (!CheckStop().ok()) png_error(png, "nobody waits for it any more");
  if (row != nullptr) png_progressive_combine_row(png, reader.out->row(static_cast<int>(y)), row);
  const bool last_pass =
      pass == 6 || png_get_interlace_type(png, reader.info) == PNG_INTERLACE_NONE;
  if (last_pass && static_cast<int>(y) + 1 == reader.out->height) reader.whole = true;
}

// Whether the header, or with a raster all of its rows, were there.
bool ReadPng(PngReader& reader) {
  if (setjmp(reader.jump) == 0) {
    png_process_data(reader.png, reader.info, const_cast<png_bytep>(reader.bytes.data()),
                     reader.bytes.size());
  }
  return reader.out == nullptr ? reader.has_info : reader.whole;
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
  PngReader reader(bytes);
  if (reader.info == nullptr) return absl::ResourceExhaustedError("image: no memory for PNG");
  if (!ReadPng(reader)) return reader.Broken();
  const absl::StatusOr<OrientationNotes> notes = ReadPngNotes(bytes);
  if (!notes.ok()) return notes.status();
  return ImageHeader{.width = static_cast<int>(png_get_image_width(reader.png, reader.info)),
                     .height = static_cast<int>(png_get_image_height(reader.png, reader.info)),
                     .orientation = StatedOrientation(*notes)};
}

absl::Status DecodePng(ImageBytes bytes, Raster& out) {
  PngReader reader(bytes, &out);
  if (reader.info == nullptr) return absl::ResourceExhaustedError("image: no memory for PNG");
  if (!ReadPng(reader)) return reader.Broken();
  for (int y = 0; reader.is_gray && y < out.height; ++y) {
    SpreadGray(out.row(y), out.width, reader.is_wide);
  }
  return absl::OkStatus();
}

}  // namespace longview::models
