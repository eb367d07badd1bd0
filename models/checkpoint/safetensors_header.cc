#include "models/checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

using nlohmann::json;

std::string Quoted(const std::string& name) {
  return absl::StrCat("\"", name.size() <= 128 ? name : name.substr(0, 125) + "...", "\"");
}

// Receives the JSON as events, so that nothing the format does not have is ever stored and a
// duplicate key is seen at all. Depth 1 is the file, depth 2 a tensor or the metadata.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  std::vector<TensorEntry> TakeEntries() { return std::move(entries_); }
  const std::string& problem() const { return problem_; }

  bool start_object(size_t) override {
    if (depth_ == 2) return Fail("unexpected object");
    ++depth_;
    return true;
  }

  bool end_object() override {
    if (depth_ == 2 && !in_metadata_ && !(has_dtype_ && has_shape_ && has_offsets_)) {
      return Fail("needs dtype, shape and data_offsets");
    }
    in_metadata_ = false;
    --depth_;
    return true;
  }

  bool key(std::string& name) override {
    field_ = name;
    if (depth_ == 1) return StartEntry(name);
    if (in_metadata_) {
      return metadata_keys_.insert(name).second || Fail("metadata key " + Quoted(name) + " twice");
    }
    bool* seen = name == "dtype"          ? &has_dtype_
                 : name == "shape"        ? &has_shape_
                 : name == "data_offsets" ? &has_offsets_
                                          : nullptr;
    if (seen == nullptr) return Fail("unknown member " + Quoted(name));
    if (*seen) return Fail("member " + Quoted(name) + " twice");
    *seen = true;
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || in_list_ || field_ == "dtype") {
      return Fail("unexpected list");
    }
    in_list_ = true;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    in_list_ = false;
    if (field_ == "shape") return SetShape();
    if (numbers_.size() != 2) return Fail("data_offsets must be two numbers");
    entries_.back().begin = numbers_[0];
    entries_.back().end = numbers_[1];
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (!in_list_) return Fail("unexpected number");
    numbers_.push_back(value);
    return true;
  }

  bool string(std::string& value) override {
    if (in_metadata_) return true;
    if (in_list_ || depth_ != 2 || field_ != "dtype") return Fail("unexpected string");
    const std::optional<DType> dtype = ParseDType(value);
    if (!dtype) return Fail("unknown dtype " + Quoted(value));
    entries_.back().dtype = *dtype;
    return true;
  }

  bool null() override { return Fail("unexpected null"); }
  bool boolean(bool) override { return Fail("unexpected true or false"); }
  bool number_integer(int64_t) override { return Fail("negative number"); }
  bool number_float(double, const std::string& text) override {
    return Fail("not a whole number below 2^64: " + text.substr(0, 32));
  }
  bool binary(json::binary_t&) override { return Fail("unexpected binary value"); }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    return Fail(absl::StrCat("header is not valid JSON near its byte ", position));
  }

 private:
  bool StartEntry(const std::string& name) {
    if (!names_.insert(name).second) return Fail("key " + Quoted(name) + " appears twice");
    in_metadata_ = name == "__metadata__";
    has_dtype_ = has_shape_ = has_offsets_ = false;
    if (!in_metadata_) entries_.emplace_back().name = name;
    return true;
  }

  bool SetShape() {
    for (uint64_t extent : numbers_) {
      if (extent > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Fail(absl::StrCat("extent ", extent, " is too large"));
      }
      entries_.back().shape.push_back(static_cast<int64_t>(extent));
    }
    return true;
  }

  bool Fail(const std::string& what) {
    if (problem_.empty()) {
      const bool in_tensor = depth_ == 2 && !entries_.empty() && !in_metadata_;
      problem_ =
          in_tensor ? absl::StrCat("tensor ", Quoted(entries_.back().name), ": ", what) : what;
    }
    return false;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_list_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::string field_;
  std::vector<uint64_t> numbers_;
  std::vector<TensorEntry> entries_;
  std::set<std::string> names_, metadata_keys_;
  std::string problem_;
};

// REQUIRES: kSafetensorsLength bytes.
uint64_t LengthOf(std::span<const std::byte> file) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<uint64_t>(file[i]);
  return length;
}

// Bytes of a tensor; nullopt if the product overflows or is not a whole number of bytes.
std::optional<uint64_t> ByteSize(const TensorEntry& entry) {
  uint64_t bits = static_cast<uint64_t>(DTypeBits(entry.dtype));
  for (int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(extent), &bits)) return std::nullopt;
  }
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

// Checks sizes and tiling; offsets become offsets in the file. Returns what is wrong, or "".
std::string PlaceEntries(std::vector<TensorEntry>& entries, uint64_t data_begin,
                         uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  // The format allows neither holes nor overlaps, so sorted tensors tile the data.
  uint64_t expected = 0;
  for (TensorEntry& entry : entries) {
    const auto fault = [&](const std::string& what) {
      return absl::StrCat("tensor ", Quoted(entry.name), ": ", what);
    };
    if (entry.begin > entry.end || entry.end > data_bytes) {
      return fault(absl::StrCat("data_offsets [", entry.begin, ", ", entry.end,
                                ") do not lie in the ", data_bytes, " bytes of data"));
    }
    const std::optional<uint64_t> bytes = ByteSize(entry);
    const std::string shape = absl::StrCat("[", absl::StrJoin(entry.shape, ", "), "]");
    if (!bytes) return fault(absl::StrCat("shape ", shape, " has no byte size below 2^61"));
    if (*bytes != entry.end - entry.begin) {
      return fault(absl::StrCat("shape ", shape, " needs ", *bytes, " bytes, data_offsets give ",
                                entry.end - entry.begin));
    }
    if (entry.begin != expected) {
      return fault(absl::StrCat(
          entry.begin < expected ? "overlaps the tensor before it" : "leaves a hole before it",
          ": begins at ", entry.begin, ", expected ", expected));
    }
    expected = entry.end;
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  if (expected != data_bytes) {
    return absl::StrCat("the tensors end at byte ", expected, " of the data, the file has ",
                        data_bytes);
  }
  return "";
}

}  // namespace

uint64_t SafetensorsHeaderEnd(std::span<const std::byte> length) {
  if (length.size() < kSafetensorsLength) return length.size();
  return kSafetensorsLength + std::min(LengthOf(length), kMaxSafetensorsHeader);
}

absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                                uint64_t file_bytes,
                                                                std::string_view origin) {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::string_view(origin.data(), origin.size()), ": ", what));
  };
  if (file_bytes < kSafetensorsLength) {
    return error(absl::StrCat("has ", file_bytes, " bytes, a safetensors file has at least 8"));
  }
  const uint64_t length = LengthOf(file);
  if (length > kMaxSafetensorsHeader) {
    return error(absl::StrCat("header length ", length, " is over the limit of ",
                              kMaxSafetensorsHeader, "; is this a safetensors file?"));
  }
  if (length > file_bytes - kSafetensorsLength) {
    return error(absl::StrCat("header length ", length, " is more than the file holds (",
                              file_bytes, " bytes): the file is truncated"));
  }
  const char* text = reinterpret_cast<const char*>(file.data()) + kSafetensorsLength;
  if (length == 0 || text[0] != '{') return error("the header does not begin with '{'");

  // The JSON library takes a NUL byte for the end of its input.
  if (std::memchr(text, 0, length) != nullptr) return error("the header holds a NUL byte");
  HeaderHandler handler;
  if (!json::sax_parse(text, text + length, &handler)) {
    return error(handler.problem().empty() ? "header is not valid JSON" : handler.problem());
  }
  std::vector<TensorEntry> entries = handler.TakeEntries();
  const uint64_t data_begin = kSafetensorsLength + length;
  std::string problem = PlaceEntries(entries, data_begin, file_bytes - data_begin);
  if (!problem.empty()) return error(problem);
  return entries;
}

}  // namespace longview::models
