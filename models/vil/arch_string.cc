#include "models/vil/arch_string.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace longview::models {
namespace {

absl::Status Wrong(const std::string& part, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat("arch: \"", part, "\" ", problem));
}

absl::StatusOr<ArchStage> ParseStage(const std::string& text) {
  ArchStage stage;
  for (const std::string& attribute : std::vector<std::string>(absl::StrSplit(text, ','))) {
    int value = 0;
    if (attribute.size() < 2 || attribute.find(' ') != std::string::npos ||
        !absl::SimpleAtoi(attribute.substr(1), &value)) {
      return Wrong(attribute, "is not a letter and a number");
    }
    stage[attribute[0]] = value;
  }
  return stage;
}

}  // namespace

absl::StatusOr<std::vector<ArchStage>> ParseArchString(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), '_');
  if (parts.size() < 3 || parts.size() > 4) {
    return Wrong(std::string(text), absl::StrCat("has ", parts.size(), " stages, not 3 or 4"));
  }
  std::vector<ArchStage> stages;
  for (const std::string& part : parts) {
    absl::StatusOr<ArchStage> stage = ParseStage(part);
    if (!stage.ok()) return stage.status();
    const int number = static_cast<int>(stages.size()) + 1;
    if (ArchValue(*stage, 'l', 1) != number) {
      return Wrong(part, absl::StrCat("must have l", number, " as stage ", number));
    }
    stages.push_back(*std::move(stage));
  }
  return stages;
}

int ArchValue(const ArchStage& stage, char key, int fallback) {
  const auto found = stage.find(key);
  return found == stage.end() ? fallback : found->second;
}

}  // namespace longview::models
