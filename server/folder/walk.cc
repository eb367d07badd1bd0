#include "server/folder/walk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "server/folder/ignore_rules.h"

namespace longview::server {
namespace {

namespace fs = std::filesystem;

constexpr std::streamsize kMostRuleBytes = 64 << 10;  // Read of a .gitignore file.

// The rules that a folder brings; nullopt = none.
std::optional<IgnoreRules> RulesOf(const fs::path& directory) {
  const fs::path path = directory / ".gitignore";
  std::error_code error;
  // A pipe would never end.
  if (!fs::is_regular_file(fs::symlink_status(path, error))) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostRuleBytes, '\0');
  file.read(text.data(), kMostRuleBytes);
  text.resize(static_cast<size_t>(file.gcount()));
  return IgnoreRules::Parse(text);
}

// Walks one directory; the rules of every folder on the way down hold below it.
class Walk {
 public:
  Walk(const fs::path& root, const WalkLimits& limits, WalkedFiles* found)
      : root_(root), limits_(limits), found_(found) {}

  void Enter(const fs::path& directory) {
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator it(directory, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      if (++seen_ > limits_.entries) {
        found_->more = true;
        break;
      }
      entries.push_back(*it);
    }
    if (error) found_->unreadable = true;
    std::sort(entries.begin(), entries.end());
    const size_t outer_rules = rules_.size();
    if (auto rules = RulesOf(directory)) rules_.emplace_back(directory, *std::move(rules));
    for (const fs::directory_entry& entry : entries) {
      if (found_->files.size() > limits_.files) break;
      Visit(entry);
    }
    rules_.erase(rules_.begin() + static_cast<std::ptrdiff_t>(outer_rules), rules_.end());
  }

 private:
  void Visit(const fs::directory_entry& entry) {
    std::error_code error;
    if (entry.path().filename().string().starts_with('.')) return;
    const fs::file_status status = entry.symlink_status(error);
    const bool is_directory = fs::is_directory(status);
    if (IsIgnored(entry.path(), is_directory)) return;
    if (is_directory && !IsGenerated(entry.path())) Enter(entry.path());
    if (!fs::is_regular_file(status)) return;
    const uintmax_t size = entry.file_size(error);
    if (error || size > limits_.file_bytes) {
      found_->more = true;
      return;
    }
    found_->files.push_back({entry.path().lexically_relative(root_).generic_string(), size});
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

  const fs::path& root_;
  const WalkLimits& limits_;
  WalkedFiles* found_;
  size_t seen_ = 0;
  // Ignore rules of the folders on the way, outermost first.
  std::vector<std::pair<fs::path, IgnoreRules>> rules_;
};

}  // namespace

WalkedFiles WalkFolder(const std::string& folder, const WalkLimits& limits) {
  WalkedFiles found;
  const fs::path root = folder;
  Walk(root, limits, &found).Enter(root);
  // One beyond the limit shows that there are more.
  if (found.files.size() > limits.files) {
    found.files.resize(limits.files);
    found.more = true;
  }
  return found;
}

}  // namespace longview::server
