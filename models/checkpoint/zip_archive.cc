#include "models/checkpoint/zip_archive.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50;
constexpr std::string_view kEndMagic = "PK\5\6";
constexpr uint32_t kLocator64Magic = 0x07064b50, kEnd64Magic = 0x06064b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kMaxComment = 0xFFFF;
constexpr size_t kLocator64Bytes = 20, kEnd64Bytes = 56;
constexpr uint32_t kIn64 = 0xFFFFFFFF;

// Little-endian bytes, read by place.
class Record {
 public:
  explicit Record(std::string_view bytes) : bytes_(bytes) {}

  uint64_t At(size_t offset, int size) const {
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; --i)
      value = value << 8 | static_cast<uint8_t>(bytes_[offset + i]);
    return value;
  }
  uint16_t U16(size_t offset) const { return static_cast<uint16_t>(At(offset, 2)); }
  uint32_t U32(size_t offset) const { return static_cast<uint32_t>(At(offset, 4)); }
  uint64_t U64(size_t offset) const { return At(offset, 8); }

 private:
  std::string_view bytes_;
};

struct Directory {
  ByteRange place;
  uint64_t entries = 0;
};

std::optional<Directory> FindDirectory(const MappedFile& file) {
  const uint64_t whole = file.bytes().size();
  const uint64_t tail = std::min<uint64_t>(whole, kEndBytes + kMaxComment);
  const std::optional<std::string> bytes = file.ReadBytes(whole - tail, tail);
  const size_t at = bytes ? bytes->rfind(kEndMagic) : std::string::npos;
  if (at == std::string::npos || bytes->size() - at < kEndBytes) return std::nullopt;
  const Record end(std::string_view(*bytes).substr(at));
  Directory directory{{end.U32(16), 0}, end.U16(10)};
  uint64_t size = end.U32(12);
  const uint64_t end_at = whole - tail + at;
  if (end_at >= kLocator64Bytes) {
    const auto locator = file.ReadBytes(end_at - kLocator64Bytes, kLocator64Bytes);
    if (locator && Record(*locator).U32(0) == kLocator64Magic) {
      const auto end64 = file.ReadBytes(Record(*locator).U64(8), kEnd64Bytes);
      if (!end64 || Record(*end64).U32(0) != kEnd64Magic) return std::nullopt;
      directory = {{Record(*end64).U64(48), 0}, Record(*end64).U64(32)};
      size = Record(*end64).U64(40);
    }
  }
  if (size > kMaxZipDirectory || directory.place.begin > end_at ||
      size > end_at - directory.place.begin) {
    return std::nullopt;
  }
  directory.place.end = directory.place.begin + size;
  return directory;
}

struct Entry {
  std::string name;
  uint64_t size = 0, header = 0;
};

// Takes 64-bit values from the extra field, where the record's own are all ones.
bool Widen64(std::string_view extra, uint64_t stored, Entry& entry) {
  while (extra.size() >= 4) {
    const size_t length = Record(extra).U16(2);
    if (length > extra.size() - 4) return false;
    if (Record(extra).U16(0) == 1) {
      std::string_view values = extra.substr(4, length);
      for (uint64_t* value : {&entry.size, &stored, &entry.header}) {
        if (*value != kIn64) continue;
        if (values.size() < 8) return false;
        *value = Record(values).U64(0);
        values.remove_prefix(8);
      }
      return stored == entry.size;
    }
    extra.remove_prefix(4 + length);
  }
  return entry.size != kIn64 && entry.header != kIn64 && stored == entry.size;
}

// Removes one record from the front. Returns what is wrong, or "".
std::string TakeEntry(std::string_view& rest, Entry& entry) {
  if (rest.size() < kEntryBytes || Record(rest).U32(0) != kEntryMagic) return "a broken directory";
  const Record record(rest);
  const size_t name = record.U16(28), extra = record.U16(30), comment = record.U16(32);
  if (rest.size() - kEntryBytes < name + extra + comment) return "a broken directory";
  entry = {std::string(rest.substr(kEntryBytes, name)), record.U32(24), record.U32(42)};
  if ((record.U16(8) & 1) != 0) return "an encrypted entry";
  if (record.U16(10) != 0) return "a compressed entry";
  if (!Widen64(rest.substr(kEntryBytes + name, extra), record.U32(20), entry)) {
    return "an entry of unclear size";
  }
  rest.remove_prefix(kEntryBytes + name + extra + comment);
  return "";
}

}  // namespace

bool IsZipArchive(const MappedFile& file) {
  const std::optional<std::string> magic = file.ReadBytes(0, 4);
  return magic && Record(*magic).U32(0) == kLocalMagic;
}

absl::StatusOr<std::map<std::string, ByteRange, std::less<>>> ReadZipEntries(
    const MappedFile& file) {
  const auto broken = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("zip archive: ", what));
  };
  const std::optional<Directory> directory = FindDirectory(file);
  const std::optional<std::string> bytes =
      directory ? file.ReadBytes(directory->place.begin, directory->place.size()) : std::nullopt;
  if (!bytes) return broken("no central directory; is the file truncated?");

  std::map<std::string, ByteRange, std::less<>> entries;
  std::vector<ByteRange> places;
  std::string_view rest = *bytes;
  for (uint64_t i = 0; i < directory->entries; ++i) {
    Entry entry;
    if (const std::string fault = TakeEntry(rest, entry); !fault.empty()) return broken(fault);
    const std::optional<std::string> local = file.ReadBytes(entry.header, kLocalBytes);
    if (!local || Record(*local).U32(0) != kLocalMagic) return broken("an entry without a header");
    // The local header's name and extra field have lengths of their own, unlike the directory's.
    const uint64_t begin =
        entry.header + kLocalBytes + Record(*local).U16(26) + Record(*local).U16(28);
    const uint64_t limit = directory->place.begin;
    if (begin > limit || entry.size > limit - begin) {
      return broken(absl::StrCat("entry \"", entry.name.substr(0, 64), "\" of ", entry.size,
                                 " bytes does not lie in the file"));
    }
    places.push_back({entry.header, begin + entry.size});
    if (!entries.emplace(entry.name, ByteRange{begin, begin + entry.size}).second) {
      return broken(absl::StrCat("entry \"", entry.name.substr(0, 64), "\" is there twice"));
    }
  }
  // Overlap is refused: a crafted archive could pass one run of bytes off as many entries.
  std::sort(places.begin(), places.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].begin < places[i - 1].end) return broken("entries overlap");
  }
  return entries;
}

}  // namespace longview::models
