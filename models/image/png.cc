// PNG by libpng. Its errors arrive by longjmp: between setjmp and the end of a call no object
// with a destructor comes to life.
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/decode.h"
#include "models/image/orientation.h"
#include "models/status_macros.h"
#include "models/stop_scope.h"

namespace longview::models {
namespace {

constexpr size_t kSignatureBytes = 8, kChunkFrame = 12;
constexpr size_t kMaxText = size_t{1} << 20;         // Pillow's MAX_TEXT_CHUNK.
constexpr size_t kMaxTextMemory = size_t{64} << 20;  // Pillow's MAX_TEXT_MEMORY.
constexpr std::string_view kRawExif = "Raw profile type exif";
constexpr std::string_view kXmpKeyword = "XML:com.adobe.xmp";

uint32_t BigEndian(std::string_view bytes) {
  const auto at = [&](int i) { return uint32_t{static_cast<uint8_t>(bytes[i])}; };
  return at(0) << 24 | at(1) << 16 | at(2) << 8 | at(3);
}

// The bytes before the next NUL byte, which is removed too; all of them if there is none.
std::string_view TakeString(std::string_view& rest) {
  const size_t end = rest.find('\0');
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return taken;
}

// The compressed texts of a file, of which one may be as long as kMaxText, all kMaxTextMemory.
class Inflater {
 public:
  // Empty if it is damaged or too long.
  std::string Inflate(std::string_view data) {
    if (exhausted()) return "";
    std::string text(kMaxText, '\0');
    uLongf size = text.size();
    const int result = uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                                  reinterpret_cast<const Bytef*>(data.data()), data.size());
    // Damaged data may have taken as much work as the longest text.
    inflated_ += result == Z_OK ? size : kMaxText;
    text.resize(result == Z_OK ? size : 0);
    return text;
  }
  bool exhausted() const { return inflated_ > kMaxTextMemory; }

 private:
  size_t inflated_ = 0;
};

// ImageMagick's form: an empty line, the name, the count of bytes, then hexadecimal lines.
std::string OfRawProfile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const size_t end = text.find('\n');
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  std::string digits;
  for (const char c : text) {
    if (absl::ascii_isxdigit(static_cast<unsigned char>(c))) digits += c;
  }
  digits.resize(digits.size() / 2 * 2);
  return absl::HexStringToBytes(digits);
}

bool IsText(std::string_view type) { return type == "tEXt" || type == "zTXt" || type == "iTXt"; }

// The text of a text chunk, `rest` being what follows its keyword.
std::string TextOf(std::string_view type, std::string_view rest, Inflater& inflater) {
  if (type == "tEXt") return std::string(rest);
  if (type == "zTXt") return rest.empty() || rest[0] != 0 ? "" : inflater.Inflate(rest.substr(1));
  if (rest.size() < 2) return "";
  const bool compressed = rest[0] != 0;
  if (compressed && rest[1] != 0) return "";
  rest.remove_prefix(2);
  TakeString(rest);  // The language.
  TakeString(rest);  // The translated keyword.
  return compressed ? inflater.Inflate(rest) : std::string(rest);
}

struct Found {
  OrientationNotes notes;
  std::optional<std::string> raw_exif;
  Inflater inflater;
};

void Note(std::string_view type, std::string_view data, Found& found) {
  if (type == "eXIf") found.notes.exif = std::string(data);
  if (!IsText(type)) return;
  const std::string_view keyword = TakeString(data);
  if (keyword == kRawExif) found.raw_exif = OfRawProfile(TextOf(type, data, found.inflater));
  if (keyword == kXmpKeyword) found.notes.xmp = TextOf(type, data, found.inflater);
  if (keyword == "exif" && type == "tEXt") found.notes.exif = std::string(data);
}

bool IsChunkType(std::string_view type) {
  return std::all_of(type.begin(), type.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

// Notes of the eXIf and text chunks, wherever they stand in the file. A file may end without
// IEND, or in bytes that are no chunk; INVALID_ARGUMENT if it ends inside a chunk behind the
// pixels.
absl::StatusOr<OrientationNotes> ReadPngNotes(ImageBytes bytes) {
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Found found;
  bool behind_pixels = false;
  // The last checksum may be missing.
  for (size_t at = kSignatureBytes; at + 8 <= file.size();) {
    const size_t length = BigEndian(file.substr(at));
    const std::string_view type = file.substr(at + 4, 4);
    if (type == "IEND" || !IsChunkType(type)) break;
    const bool pixels = type == "IDAT";
    if (length > file.size() - at - 8) {
      if (!behind_pixels || pixels) break;  // Decoding tells whether a pixel is missing.
      return Undecodable(absl::StrCat("image: PNG: the file ends inside its chunk ",
                                      absl::string_view(type.data(), type.size())));
    }
    Note(type, file.substr(at + 8, length), found);
    if (found.inflater.exhausted()) {
      return Undecodable(
          absl::StrCat("image: PNG: compressed texts of more than ", kMaxTextMemory >> 20, " MiB"));
    }
    behind_pixels = behind_pixels || pixels;
    at += length + kChunkFrame;
  }
  if (!found.notes.exif) found.notes.exif = std::move(found.raw_exif);
  return std::move(found.notes);
}

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
  ASSIGN_OR_RETURN(const OrientationNotes notes, ReadPngNotes(bytes));
  return ImageHeader{.width = static_cast<int>(png_get_image_width(reader.png, reader.info)),
                     .height = static_cast<int>(png_get_image_height(reader.png, reader.info)),
                     .orientation = StatedOrientation(notes)};
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
