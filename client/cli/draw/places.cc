#include "client/cli/draw/places.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::client {

absl::StatusOr<std::map<std::string, std::string>> PlacesOf(const std::vector<std::string>& inputs,
                                                            const std::string& target) {
  std::map<std::string, std::string> places;
  std::error_code error;
  if (target.ends_with("/")) std::filesystem::create_directories(target, error);
  if (!std::filesystem::is_directory(target, error)) {
    if (inputs.size() == 1 && !target.ends_with("/")) return std::map{std::pair(inputs[0], target)};
    return absl::InvalidArgumentError(
        absl::StrCat("--draw: ", target, " is no directory, for ", inputs.size(), " pictures"));
  }
  std::set<std::string> taken;
  for (const std::string& input : inputs) {
    if (places.contains(input)) continue;
    const std::string stem = input == "-" ? "input" : std::filesystem::path(input).stem().string();
    std::string name = stem;
    for (int number = 2; !taken.insert(name).second; ++number)
      name = absl::StrCat(stem, "-", number);
    places[input] = (std::filesystem::path(target) / absl::StrCat(name, ".png")).string();
  }
  return places;
}

}  // namespace longview::client
