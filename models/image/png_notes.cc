#include "models/image/png_notes.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "models/image/undecodable.h"

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
  TakeString(rest);  // The language,
  TakeString(rest);  // and the translated keyword.
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

}  // namespace

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

}  // namespace longview::models
