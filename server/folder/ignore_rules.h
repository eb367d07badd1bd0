// Rules for files that are not sources: .gitignore patterns, and folders that tools fill.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longview::server {

// Thread-safe once parsed.
class IgnoreRules {
 public:
  // Lines that are no rules, and those that would cost much to match, are passed over.
  static IgnoreRules Parse(std::string_view text);

  // Whether a path below the file's folder ("src/a.o", no slash at its ends) is ignored; nullopt =
  // no rule speaks of it. The last rule that matches decides, as in git.
  std::optional<bool> Ignores(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::vector<std::string> parts;  // Between slashes; "**" stands for any number of folders.
    bool directories_only = false;
    bool ignores = true;  // False = a rule with "!".
  };

  std::vector<Rule> rules_;
};

// Whether tools fill this folder: one of packages, of byte code, a build's or a cache, by its name
// or by the file that marks it.
bool IsGenerated(const std::filesystem::path& directory);

}  // namespace longview::server
