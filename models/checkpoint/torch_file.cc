#include "models/checkpoint/torch_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/checkpoint/pickle.h"
#include "models/checkpoint/zip_archive.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using StoragePlaces = std::map<std::string, ByteRange, std::less<>>;

struct TorchContent {
  Pickled pickled;
  StoragePlaces places;  // By key.
};

// The pickle of a magic number.
constexpr std::string_view kLegacyBeginning("\x80\2\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
constexpr int64_t kLegacyProtocol = 1001;

uint64_t ElementBytes(DType dtype) { return static_cast<uint64_t>(DTypeBits(dtype)) / 8; }

absl::Status BrokenTorch(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::StatusOr<std::string> BytesIn(const MappedFile& file, ByteRange place) {
  std::optional<std::string> bytes = file.ReadBytes(place.begin, place.size());
  if (bytes) return *std::move(bytes);
  return absl::FailedPreconditionError("was shortened while it was opened");
}

absl::StatusOr<TorchContent> ReadZipped(const MappedFile& file) {
  ASSIGN_OR_RETURN(auto entries, ReadZipEntries(file));
  constexpr std::string_view kPickle = "/data.pkl";
  std::string stem;
  for (const auto& [name, place] : entries) {
    if (name.ends_with(kPickle) && name.find('/') == name.size() - kPickle.size()) {
      if (!stem.empty()) return BrokenTorch("more than one data.pkl");
      stem = name.substr(0, name.size() - kPickle.size() + 1);
    }
  }
  if (stem.empty()) return BrokenTorch("a zip archive without data.pkl");
  if (const auto order = entries.find(stem + "byteorder"); order != entries.end()) {
    if (order->second.size() > 16) return BrokenTorch("an unknown order of bytes");
    ASSIGN_OR_RETURN(const auto name, BytesIn(file, order->second));
    if (name != "little") return absl::FailedPreconditionError("written by a big-endian machine");
  }
  const ByteRange pickle = entries.find(stem + "data.pkl")->second;
  if (pickle.size() > kMaxPickleBytes) {
    return BrokenTorch(
        absl::StrCat("data.pkl has ", pickle.size(), " bytes, the limit is ", kMaxPickleBytes));
  }
  ASSIGN_OR_RETURN(const std::string bytes, BytesIn(file, pickle));
  ASSIGN_OR_RETURN(Pickled pickled, ReadPickle(bytes, PickleKind::kStateDict));
  TorchContent content{std::move(pickled), {}};
  for (const auto& [key, storage] : content.pickled.storages) {
    const auto place = entries.find(absl::StrCat(stem, "data/", key));
    if (place != entries.end()) content.places.emplace(key, place->second);
  }
  return content;
}

// Storages stand behind the pickles in the order of their keys, each behind its count of elements.
absl::StatusOr<StoragePlaces> PlaceLegacy(const MappedFile& file, uint64_t at,
                                          const std::vector<std::string>& keys,
                                          const Pickled& pickled) {
  StoragePlaces places;
  for (const std::string& key : keys) {
    uint64_t count = 0;
    const auto storage = pickled.storages.find(key);
    if (storage == pickled.storages.end() ||
        !file.Read(at, std::as_writable_bytes(std::span(&count, 1)))) {
      return BrokenTorch(absl::StrCat("storage \"", key.substr(0, kMaxStorageKey),
                                      "\" is truncated, or used by no tensor"));
    }
    at += sizeof count;
    const uint64_t element = ElementBytes(storage->second.dtype);
    if (count > (file.bytes().size() - at) / element) {
      return BrokenTorch(
          absl::StrCat("storage \"", key, "\" of ", count, " elements does not lie in the file"));
    }
    if (!places.emplace(key, ByteRange{at, at + count * element}).second) {
      return BrokenTorch(absl::StrCat("storage \"", key, "\" is there twice"));
    }
    at += count * element;
  }
  return places;
}

absl::StatusOr<TorchContent> ReadLegacy(const MappedFile& file) {
  const uint64_t size = std::min<uint64_t>(file.bytes().size(), kMaxPickleBytes);
  ASSIGN_OR_RETURN(const std::string bytes, BytesIn(file, {0, size}));
  if (!bytes.starts_with(kLegacyBeginning)) {
    return absl::FailedPreconditionError("not a file that torch.save wrote");
  }
  std::string_view rest = std::string_view(bytes).substr(kLegacyBeginning.size());
  std::vector<Pickled> parts;
  for (const PickleKind kind : {PickleKind::kNumber, PickleKind::kSystemFacts,
                                PickleKind::kStateDict, PickleKind::kTexts}) {
    ASSIGN_OR_RETURN(Pickled part, ReadPickle(rest, kind));
    rest.remove_prefix(part.bytes);
    parts.push_back(std::move(part));
  }
  if (parts[0].number != kLegacyProtocol) {
    return BrokenTorch(absl::StrCat("protocol ", parts[0].number, ", expected ", kLegacyProtocol));
  }
  if (!parts[1].little_endian) {
    return absl::FailedPreconditionError("written by a big-endian machine");
  }
  ASSIGN_OR_RETURN(auto places,
                   PlaceLegacy(file, bytes.size() - rest.size(), parts[3].keys, parts[2]));
  return TorchContent{std::move(parts[2]), std::move(places)};
}

bool IsContiguous(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

int64_t Elements(const PickledTensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) {
    if (extent == 0) return 0;
  }
  for (const int64_t extent : tensor.shape) count *= extent;
  return count;
}

// The elements in row-major order, of a tensor with as many as its storage at most.
absl::StatusOr<std::vector<std::byte>> Gathered(const MappedFile& file, const PickledTensor& tensor,
                                                ByteRange storage) {
  const size_t element = ElementBytes(tensor.storage.dtype);
  ASSIGN_OR_RETURN(const std::string stored, BytesIn(file, storage));
  std::vector<std::byte> copy(static_cast<size_t>(Elements(tensor)) * element);
  std::vector<int64_t> index(tensor.shape.size());
  uint64_t at = tensor.offset;
  for (size_t to = 0; to < copy.size(); to += element) {
    std::memcpy(copy.data() + to, stored.data() + at * element, element);
    for (size_t i = index.size(); i-- > 0;) {
      at += static_cast<uint64_t>(tensor.strides[i]);
      if (++index[i] < tensor.shape[i]) break;
      at -= static_cast<uint64_t>(tensor.strides[i] * tensor.shape[i]);
      index[i] = 0;
    }
  }
  return copy;
}

absl::StatusOr<TorchEntry> Placed(const MappedFile& file, const TorchContent& content,
                                  std::string name, const PickledTensor& tensor) {
  const PickledStorage& storage = tensor.storage;
  const auto place = content.places.find(storage.key);
  const uint64_t element = ElementBytes(storage.dtype);
  if (place == content.places.end()) {
    return BrokenTorch(absl::StrCat("storage \"", storage.key, "\" is not in the file"));
  }
  if (place->second.size() % element != 0 || place->second.size() / element != storage.elements) {
    return BrokenTorch(absl::StrCat("storage \"", storage.key, "\" has ", place->second.size(),
                                    " bytes, its ", storage.elements, " elements of ", element,
                                    " bytes need others"));
  }
  TorchEntry entry{std::move(name), storage.dtype, tensor.shape, place->second.begin, {}};
  const int64_t elements = Elements(tensor);
  if (elements == 0) return entry;
  if (IsContiguous(tensor)) {
    entry.begin += tensor.offset * element;
    return entry;
  }
  if (static_cast<uint64_t>(elements) > storage.elements) {
    return absl::FailedPreconditionError("repeats elements of its storage");
  }
  ASSIGN_OR_RETURN(auto copy, Gathered(file, tensor, place->second));
  entry.copy = std::move(copy);
  return entry;
}

absl::StatusOr<std::vector<TorchEntry>> ReadTorchEntries(const MappedFile& file) {
  ASSIGN_OR_RETURN(TorchContent content, IsZipArchive(file) ? ReadZipped(file) : ReadLegacy(file));
  std::vector<TorchEntry> entries;
  std::set<std::string, std::less<>> names;
  uint64_t copied = 0;
  for (auto& [name, tensor] : content.pickled.tensors) {
    const auto named = [&, shown = name.substr(0, 128)](const absl::Status& status) {
      return absl::Status(status.code(),
                          absl::StrCat("tensor \"", shown, "\": ", status.message()));
    };
    if (!names.insert(name).second) return named(BrokenTorch("is there twice"));
    absl::StatusOr<TorchEntry> entry = Placed(file, content, name, tensor);
    if (!entry.ok()) return named(entry.status());
    copied += entry->copy.size();
    if (copied > file.bytes().size())
      return named(BrokenTorch("copies of more bytes than the file has"));
    entries.push_back(*std::move(entry));
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<TorchEntry>> ReadTorchFile(const MappedFile& file) {
  absl::StatusOr<std::vector<TorchEntry>> entries = ReadTorchEntries(file);
  if (entries.ok()) return entries;
  const std::string folder = std::filesystem::path(file.path()).parent_path().string();
  return absl::Status(entries.status().code(),
                      absl::StrCat(file.path(), ": ", entries.status().message(),
                                   ". Convert it once: python3 "
                                   "models/convert/pickle_to_safetensors.py ",
                                   folder.empty() ? "." : folder));
}

}  // namespace longview::models
