#include "server/app/quantize.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/quantize/quantize.h"
#include "models/status_macros.h"
#include "server/folder/walk.h"

namespace longview::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostListed = 100'000;

// The files of a folder, as those that `longview search` reads are found.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& folder, size_t most_bytes,
                                                 std::vector<std::string>& notes) {
  const WalkedFiles walked = WalkFolder(folder, {.files = kMostListed, .file_bytes = most_bytes});
  std::vector<std::string> paths;
  for (const WalkedFiles::File& file : walked.files) {
    paths.push_back((fs::path(folder) / file.path).string());
  }
  if (walked.more) {
    notes.push_back(absl::StrCat(folder, ": larger files than of ", most_bytes,
                                 " bytes are left out, and all beyond ", kMostListed));
  }
  if (!paths.empty()) return paths;
  if (walked.unreadable) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": the folder cannot be listed"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": no files of at most ", most_bytes, " bytes in it"));
}

absl::StatusOr<models::GivenFiles> FindInputs(const QuantizeCommand& command) {
  models::GivenFiles files;
  std::error_code error;
  if (fs::is_directory(command.texts, error)) {
    ASSIGN_OR_RETURN(files.texts, FilesOf(command.texts, models::kMostTextBytes, files.notes));
  } else {
    files.lines = command.texts;
  }
  if (command.pictures.empty()) return files;
  if (!fs::is_directory(command.pictures, error)) {
    return absl::InvalidArgumentError(absl::StrCat(command.pictures, ": no folder of pictures"));
  }
  ASSIGN_OR_RETURN(files.pictures,
                   FilesOf(command.pictures, models::kMostPictureBytes, files.notes));
  return files;
}

// Shows how far the gate is.
class Progress {
 public:
  Progress(std::ostream& err, bool draws) : err_(err), draws_(draws) {}
  ~Progress() { Erase(); }

  void Tell(std::string_view step, size_t done, size_t all) {
    if (draws_) {
      Draw(step, done, all);
    } else if (done == all) {
      err_ << step << ": " << all << " inputs" << std::endl;
    }
  }

 private:
  static constexpr size_t kWidth = 30;

  void Draw(std::string_view step, size_t done, size_t all) {
    const size_t full = done * kWidth / std::max<size_t>(all, 1);
    if (full == full_ && step == step_ && done != all) return;
    full_ = full;
    step_ = step;
    err_ << "\r\033[K[" << std::string(full, '#') << std::string(kWidth - full, ' ') << "] " << step
         << " " << done << "/" << all << std::flush;
    drawn_ = true;
  }

  void Erase() {
    if (drawn_) err_ << "\r\033[K" << std::flush;
  }

  std::ostream& err_;
  const bool draws_;
  size_t full_ = 0;
  std::string step_;
  bool drawn_ = false;
};

}  // namespace

absl::Status RunQuantize(const QuantizeCommand& command, const models::LoadOptions& load,
                         std::ostream& out, std::ostream& err, bool draws) {
  models::QuantizeOptions options = {
      .directory = command.directory, .files = {}, .dry_run = command.dry_run, .load = load};
  ASSIGN_OR_RETURN(options.files, FindInputs(command));
  absl::StatusOr<models::QuantizeResult> result;
  {
    Progress progress(err, draws);
    result = models::Quantize(options, [&](std::string_view step, size_t done, size_t all) {
      progress.Tell(step, done, all);
    });
  }
  if (!result.ok()) return result.status();
  out << result->report << std::flush;
  if (result->failed.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(result->failed);
}

}  // namespace longview::server
