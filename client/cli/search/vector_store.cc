#include "client/cli/search/vector_store.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace longview::client {
namespace {

namespace fs = std::filesystem;

// Changes with the layout of the files and with where texts are cut (chunks.h).
constexpr std::string_view kFormat = "longview vectors 1\n";
constexpr char kUnfinished[] = ".unfinished-";
constexpr size_t kMostNumbers = size_t{1} << 16;  // A vector has no more.
constexpr auto kAbandoned = std::chrono::hours(1);
// https://bford.info/cachedir/
constexpr std::string_view kTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Vectors of files that `longview search` has read; they may be removed at any time.\n";

using Digest = std::array<char, SHA256_DIGEST_LENGTH>;

Digest DigestOf(std::string_view bytes) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string_view View(const Digest& digest) { return {digest.data(), digest.size()}; }

// An open file, or none.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { Close(); }

  int get() const { return descriptor_; }
  bool Close() { return descriptor_ < 0 || close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

bool WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::optional<std::string> ReadAll(int descriptor, size_t most_bytes) {
  struct stat about {};
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<uint64_t>(about.st_size) > most_bytes) {
    return std::nullopt;
  }
  std::string bytes(static_cast<size_t>(about.st_size), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = read(descriptor, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    at += static_cast<size_t>(count);
  }
  return bytes;
}

// The bytes in front of the numbers; the checksum behind them is of both.
std::string HeaderOf(const std::string& key, size_t count) {
  return absl::StrCat(absl::string_view(kFormat.data(), kFormat.size()), key, " ", count, "\n");
}

absl::Status Failed(const fs::path& path, int error) {
  return absl::UnavailableError(
      absl::StrCat(path.string(), ": ", std::generic_category().message(error)));
}

absl::Status MakeFolders(const fs::path& folder, const fs::path& bucket) {
  std::error_code error;
  if (fs::is_directory(bucket, error)) return absl::OkStatus();
  fs::create_directories(folder.parent_path(), error);
  for (const fs::path& each : {folder, bucket}) {
    if (mkdir(each.c_str(), S_IRWXU) != 0 && errno != EEXIST) return Failed(each, errno);
  }
  std::ofstream(folder / "CACHEDIR.TAG") << kTag;
  return absl::OkStatus();
}

}  // namespace

VectorStore::VectorStore(std::string folder, int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::string VectorStore::KeyOf(std::string_view settings, std::string_view text) {
  std::string both(View(DigestOf(settings)));
  both += View(DigestOf(text));
  const Digest digest = DigestOf(both);
  return absl::BytesToHexString(absl::string_view(digest.data(), digest.size()));
}

std::string VectorStore::PathOf(const std::string& key) const {
  return (fs::path(folder_) / key.substr(0, 2) / key.substr(2)).string();
}

std::optional<std::vector<float>> VectorStore::Find(const std::string& key, size_t count) const {
  const File file(open(PathOf(key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 || count == 0) return std::nullopt;
  const std::string header = HeaderOf(key, count);
  const size_t around = header.size() + sizeof(Digest);
  const std::optional<std::string> bytes =
      ReadAll(file.get(), around + count * kMostNumbers * sizeof(float));
  if (!bytes || bytes->size() <= around || !bytes->starts_with(header)) return std::nullopt;
  const size_t size = bytes->size() - around;
  const std::string_view whole(*bytes);
  if (size % (count * sizeof(float)) != 0 ||
      whole.substr(header.size() + size) != View(DigestOf(whole.substr(0, header.size() + size)))) {
    return std::nullopt;
  }
  std::vector<float> vectors(size / sizeof(float));
  std::memcpy(vectors.data(), bytes->data() + header.size(), size);
  futimens(file.get(), nullptr);  // Best effort: the file is removed a little early without it.
  return vectors;
}

absl::Status VectorStore::Keep(const std::string& key, size_t count,
                               std::span<const float> vectors) const {
  const fs::path path = PathOf(key), bucket = path.parent_path();
  if (absl::Status status = MakeFolders(folder_, bucket); !status.ok()) return status;
  std::string bytes = HeaderOf(key, count);
  bytes.append(reinterpret_cast<const char*>(vectors.data()), vectors.size_bytes());
  bytes += View(DigestOf(bytes));
  std::string unfinished = absl::StrCat(bucket.string(), "/", kUnfinished, "XXXXXX");
  File file(mkostemp(unfinished.data(), O_CLOEXEC));
  if (file.get() < 0) return Failed(bucket, errno);
  const bool written =
      WriteAll(file.get(), bytes) && file.Close() && rename(unfinished.c_str(), path.c_str()) == 0;
  if (written) return absl::OkStatus();
  const int error = errno;
  unlink(unfinished.c_str());
  return Failed(path, error);
}

void VectorStore::Trim() const {
  struct Kept {
    fs::file_time_type used;
    fs::path path;
    int64_t bytes;
  };
  std::vector<Kept> files;
  int64_t bytes = 0;
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error)) {
    // Another process may remove it meanwhile.
    std::error_code gone;
    if (it.depth() != 1 || !it->is_regular_file(gone) || gone) continue;
    const fs::file_time_type used = it->last_write_time(gone);
    const auto size = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    if (it->path().filename().string().starts_with(kUnfinished)) {
      if (now - used > kAbandoned) fs::remove(it->path(), gone);
      continue;
    }
    files.push_back({used, it->path(), size});
    bytes += size;
  }
  if (bytes <= most_bytes_) return;
  std::sort(files.begin(), files.end(),
            [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& file : files) {
    if (bytes <= most_bytes_) return;
    std::error_code gone;
    fs::remove(file.path, gone);
    bytes -= file.bytes;
  }
}

}  // namespace longview::client
