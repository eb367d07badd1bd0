// JPEG by libjpeg, called as Pillow calls it: the bytes there are and no end of them, so that a
// file without its last pixels is refused. Its errors arrive by longjmp: between setjmp and the end
// of a call no object with a destructor comes to life.
#include <cstdio>  // Before jpeglib.h, which uses its types.

#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/orientation.h"
#include "models/stop_scope.h"

namespace longview::models {
namespace {

// A file of very many scans costs decoding time out of all proportion to its size.
constexpr int kMaxScans = 500;
constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kWholeMarker = 0xFFFF;

// A JPEG file being read. The destructor frees what libjpeg holds, also after an error.
struct JpegReader {
  explicit JpegReader(ImageBytes bytes) {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = OnError;
    errors.emit_message = [](j_common_ptr, int) {};
    progress.progress_monitor = OnProgress;
    source.init_source = [](j_decompress_ptr) {};
    source.fill_input_buffer = [](j_decompress_ptr) -> boolean { return FALSE; };
    source.skip_input_data = OnSkip;
    source.resync_to_restart = jpeg_resync_to_restart;
    source.term_source = [](j_decompress_ptr) {};
    source.next_input_byte = bytes.data();
    source.bytes_in_buffer = bytes.size();
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;

  static JpegReader& Of(j_common_ptr jpeg) { return *static_cast<JpegReader*>(jpeg->client_data); }
  static void OnError(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, Of(jpeg).message);
    std::longjmp(Of(jpeg).jump, 1);
  }
  static void Fail(j_common_ptr jpeg, const char* what) {
    std::snprintf(Of(jpeg).message, sizeof Of(jpeg).message, "%s", what);
    std::longjmp(Of(jpeg).jump, 1);
  }
  static void OnProgress(j_common_ptr jpeg) {
    if (!CheckStop().ok()) Fail(jpeg, "nobody waits for it any more");
    const int scans = reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number;
    if (scans > kMaxScans) Fail(jpeg, "more than 500 scans");
  }
  static void OnSkip(j_decompress_ptr jpeg, long count) {
    const size_t skipped = std::min(static_cast<size_t>(std::max(count, 0L)),
                                    static_cast<size_t>(jpeg->src->bytes_in_buffer));
    jpeg->src->next_input_byte += skipped;
    jpeg->src->bytes_in_buffer -= skipped;
  }

  absl::Status Broken() const { return Undecodable(absl::StrCat("image: JPEG: ", message)); }

  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  jpeg_source_mgr source{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "the file ends too early";
};

// Whether the header was read. False leaves `message`, as in the functions below.
bool ReadJpegInfo(JpegReader& reader) {
  if (setjmp(reader.jump) != 0) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.jpeg.client_data = &reader;
  reader.jpeg.progress = &reader.progress;
  reader.jpeg.src = &reader.source;
  jpeg_save_markers(&reader.jpeg, kExifMarker, kWholeMarker);
  return jpeg_read_header(&reader.jpeg, TRUE) == JPEG_HEADER_OK;
}

bool ReadJpegRows(JpegReader& reader, JSAMPROW* rows) {
  if (setjmp(reader.jump) != 0) return false;
  if (!jpeg_start_decompress(&reader.jpeg)) return false;
  while (reader.jpeg.output_scanline < reader.jpeg.output_height) {
    if (jpeg_read_scanlines(&reader.jpeg, rows + reader.jpeg.output_scanline, 1) != 1) return false;
  }
  return true;
}

OrientationNotes NotesOf(const jpeg_decompress_struct& jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6), kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  OrientationNotes notes;
  for (auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (data.starts_with(kExif)) {  // A long block goes on in the next marker.
      if (!notes.exif) notes.exif.emplace();
      notes.exif->append(data.substr(kExif.size()));
    } else if (data.starts_with(kXmp)) {
      notes.xmp = data.substr(kXmp.size());
    }
  }
  return notes;
}

// Pillow's formula for inverted CMYK, which is how JPEG files hold it.
void CmykToRgb(const uint8_t* cmyk, size_t pixels, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i) {
    const int white = cmyk[4 * i + 3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[4 * i + c]) * white + 128;
      rgb[3 * i + c] = static_cast<uint8_t>(white - (((product >> 8) + product) >> 8));
    }
  }
}

}  // namespace

absl::StatusOr<ImageHeader> ReadJpegHeader(ImageBytes bytes) {
  JpegReader reader(bytes);
  if (!ReadJpegInfo(reader)) return reader.Broken();
  const jpeg_decompress_struct& jpeg = reader.jpeg;
  if (jpeg.num_components == 2 || jpeg.num_components > 4) {
    return Undecodable(
        absl::StrCat("image: JPEG: ", jpeg.num_components, " colours; 1, 3 and 4 can be read"));
  }
  return ImageHeader{.width = static_cast<int>(jpeg.image_width),
                     .height = static_cast<int>(jpeg.image_height),
                     .orientation = StatedOrientation(NotesOf(jpeg))};
}

absl::Status DecodeJpeg(ImageBytes bytes, Raster& out) {
  JpegReader reader(bytes);
  if (!ReadJpegInfo(reader)) return reader.Broken();
  const bool cmyk = reader.jpeg.num_components == 4;
  reader.jpeg.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  const size_t pixels = size_t{1} * out.width * out.height;
  std::vector<uint8_t> inks(cmyk ? 4 * pixels : 0);
  std::vector<JSAMPROW> rows(out.height);
  for (int y = 0; y < out.height; ++y) {
    rows[y] = cmyk ? inks.data() + size_t{4} * out.width * y : out.row(y);
  }
  if (!ReadJpegRows(reader, rows.data())) return reader.Broken();
  if (cmyk) CmykToRgb(inks.data(), pixels, out.rgb.data());
  return absl::OkStatus();
}

}  // namespace longview::models
