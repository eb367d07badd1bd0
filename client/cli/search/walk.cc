#include "client/cli/search/walk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "server/folder/ignore_rules.h"

namespace longview::client {
namespace {

namespace fs = std::filesystem;

// Walks one directory; the rules of every folder on the way down hold below it.
class Walk {
 public:
  Walk(int64_t max_file_bytes, FoundFiles* found)
      : max_file_bytes_(max_file_bytes), found_(found) {}

  void Enter(const fs::path& directory) {
    const size_t outer_rules = rules_.size();
    if (std::ifstream file(directory / ".gitignore", std::ios::binary); file) {
      std::ostringstream text;
      text << file.rdbuf();
      rules_.emplace_back(directory, server::IgnoreRules::Parse(text.str()));
    }
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator it(directory, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      entries.push_back(*it);
    }
    if (error) found_->unreadable.push_back(directory.string());
    std::sort(entries.begin(), entries.end());
    for (const fs::directory_entry& entry : entries) Visit(entry);
    rules_.erase(rules_.begin() + static_cast<std::ptrdiff_t>(outer_rules), rules_.end());
  }

 private:
  void Visit(const fs::directory_entry& entry) {
    std::error_code error;
    if (entry.path().filename().string().starts_with('.')) return;
    const bool is_directory = entry.is_directory(error);
    if (IsIgnored(entry.path(), is_directory)) return;
    if (is_directory) {
      if (!entry.is_symlink(error) && !server::IsGenerated(entry.path())) Enter(entry.path());
      return;
    }
    if (!entry.is_regular_file(error)) return;
    const uintmax_t size = entry.file_size(error);
    const bool fits = !error && size <= static_cast<uintmax_t>(max_file_bytes_);
    (fits ? found_->paths : found_->too_large).push_back(entry.path().string());
  }

  // The nearest file's rules come first.
  bool IsIgnored(const fs::path& path, bool is_directory) const {
    for (auto own = rules_.rbegin(); own != rules_.rend(); ++own) {
      const std::string below = path.lexically_relative(own->first).generic_string();
      if (const std::optional<bool> ignored = own->second.Ignores(below, is_directory)) {
        return *ignored;
      }
    }
    return false;
  }

  int64_t max_file_bytes_;
  FoundFiles* found_;
  // Ignore rules of the folders on the way, outermost first.
  std::vector<std::pair<fs::path, server::IgnoreRules>> rules_;
};

}  // namespace

FoundFiles FindFiles(const std::vector<std::string>& arguments, int64_t max_file_bytes) {
  FoundFiles found;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (argument != "-" && fs::is_directory(argument, error)) {
      Walk(max_file_bytes, &found).Enter(argument);
    } else {
      found.paths.push_back(argument);
    }
  }
  return found;
}

}  // namespace longview::client
