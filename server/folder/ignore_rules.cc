#include "server/folder/ignore_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace longview::server {
namespace {

// Each "**" may try every depth of a path.
constexpr int kMostDoubleStars = 4;
constexpr size_t kLongestRule = 512;

std::vector<std::string> Parts(std::string_view path) {
  return absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty());
}

bool Matches(std::span<const std::string> rule, std::span<const std::string> path) {
  if (rule.empty()) return path.empty();
  if (rule[0] != "**") {
    return !path.empty() && fnmatch(rule[0].c_str(), path[0].c_str(), 0) == 0 &&
           Matches(rule.subspan(1), path.subspan(1));
  }
  // At a rule's end it stands for what is inside, not for the folder itself.
  if (rule.size() == 1) return !path.empty();
  for (size_t skipped = 0; skipped <= path.size(); ++skipped) {
    if (Matches(rule.subspan(1), path.subspan(skipped))) return true;
  }
  return false;
}

}  // namespace

IgnoreRules IgnoreRules::Parse(std::string_view text) {
  IgnoreRules rules;
  for (const absl::string_view whole :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    std::string_view line(whole.data(), whole.size());
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line[0] == '#' || line.size() > kLongestRule) continue;
    Rule rule;
    rule.ignores = line[0] != '!';
    if (!rule.ignores) line.remove_prefix(1);
    rule.directories_only = line.ends_with('/');
    if (rule.directories_only) line.remove_suffix(1);
    const bool anywhere = line.find('/') == std::string_view::npos;
    rule.parts = Parts(line);
    if (anywhere) rule.parts.insert(rule.parts.begin(), "**");
    if (std::count(rule.parts.begin(), rule.parts.end(), "**") > kMostDoubleStars) continue;
    if (!line.empty()) rules.rules_.push_back(std::move(rule));
  }
  return rules;
}

std::optional<bool> IgnoreRules::Ignores(std::string_view path, bool is_directory) const {
  const std::vector<std::string> parts = Parts(path);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->directories_only && !is_directory) continue;
    if (Matches(rule->parts, parts)) return rule->ignores;
  }
  return std::nullopt;
}

bool IsGenerated(const std::filesystem::path& directory) {
  const std::filesystem::path name = directory.filename();
  if (name == "node_modules" || name == "__pycache__") return true;
  for (const char* mark : {"CACHEDIR.TAG", "CMakeCache.txt", "pyvenv.cfg"}) {
    std::error_code error;
    if (std::filesystem::exists(directory / mark, error)) return true;
  }
  return false;
}

}  // namespace longview::server
