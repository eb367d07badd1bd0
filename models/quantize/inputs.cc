#include "models/quantize/inputs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"
#include "models/text/utf8.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

constexpr size_t kMostQuestionWords = 64;
constexpr size_t kMostQuestionBytes = 1000;

// Whether it is UTF-8 with something to read in it. A zero byte is a binary file's.
bool IsReadable(std::string_view text) {
  return text.find('\0') == std::string_view::npos &&
         !absl::StripAsciiWhitespace({text.data(), text.size()}).empty() &&
         ReplaceInvalidUtf8(text) == text;
}

absl::StatusOr<std::string> ReadBeginning(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostTextBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) {
    const char* reason = errno != 0 ? std::strerror(errno) : "it cannot be read";
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", reason));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return BeginningOf(text, kMostTextBytes);
}

absl::StatusOr<GivenText> ParseLine(std::string_view line, const std::string& origin) {
  ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(line, origin));
  GivenText given;
  const auto read = [&](const char* key, bool needed, std::string& text) -> absl::Status {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (found != object.end() && found->is_string()) {
      text = BeginningOf(found->get_ref<const std::string&>(), kMostTextBytes);
    } else if (needed || found != object.end()) {
      return absl::InvalidArgumentError(absl::StrCat(origin, ": expected a string \"", key, "\""));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read("text", true, given.text));
  RETURN_IF_ERROR(read("text_pair", false, given.pair));
  return given;
}

absl::StatusOr<std::vector<GivenText>> ReadLines(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path, kMostLinesBytes));
  const bool objects = path.ends_with(".jsonl") || path.ends_with(".ndjson");
  std::vector<GivenText> texts;
  size_t number = 0;
  for (const absl::string_view whole : absl::StrSplit(content, '\n')) {
    const absl::string_view line = absl::StripSuffix(whole, "\r");
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::string_view view(line.data(), line.size());
    if (objects) {
      ASSIGN_OR_RETURN(GivenText given, ParseLine(view, absl::StrCat(path, ":", number)));
      texts.push_back(std::move(given));
    } else {
      texts.push_back({BeginningOf(view, kMostTextBytes), ""});
    }
  }
  return texts;
}

// The elements of `list` that count, with a note where not all do.
template <typename Element>
void Thin(std::string_view what, std::vector<Element>& list, std::vector<std::string>& notes) {
  if (list.size() <= kMostInputs) return;
  notes.push_back(absl::StrCat(kMostInputs, " of ", list.size(), " ", std::string(what),
                               " count, evenly spaced"));
  std::vector<Element> kept;
  for (const size_t place : EvenlySpaced(list.size(), kMostInputs)) {
    kept.push_back(std::move(list[place]));
  }
  list = std::move(kept);
}

}  // namespace

absl::Status ReadInputs(const GivenFiles& files, GivenInputs& inputs) {
  inputs.pictures = files.pictures;
  inputs.notes = files.notes;
  Thin("pictures", inputs.pictures, inputs.notes);
  if (!files.lines.empty()) {
    ASSIGN_OR_RETURN(inputs.texts, ReadLines(files.lines));
    Thin("texts", inputs.texts, inputs.notes);
  }
  std::vector<std::string> paths = files.texts;
  Thin("files", paths, inputs.notes);
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::string text, ReadBeginning(path));
    inputs.texts.push_back({std::move(text), ""});
  }
  const size_t unread = std::erase_if(inputs.texts, [](const GivenText& given) {
    return !IsReadable(given.text) || (!given.pair.empty() && !IsReadable(given.pair));
  });
  if (unread > 0) {
    inputs.notes.push_back(absl::StrCat(unread, " texts left out: empty, or not UTF-8"));
  }
  return absl::OkStatus();
}

std::vector<size_t> EvenlySpaced(size_t count, size_t most) {
  const size_t taken = std::min(count, most);
  std::vector<size_t> places;
  places.reserve(taken);
  for (size_t i = 0; i < taken; ++i) places.push_back(i * count / taken);
  return places;
}

std::string BeginningOf(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const std::string_view cut = text.substr(0, most);
  return std::string(cut.substr(0, cut.size() - IncompleteUtf8Suffix(cut)));
}

std::string FirstSentence(std::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace({text.data(), text.size()});
  std::string rest = BeginningOf({stripped.data(), stripped.size()}, kMostQuestionBytes);
  size_t words = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    const bool space = absl::ascii_isspace(static_cast<unsigned char>(rest[i]));
    if (!space || i == 0) continue;
    const char before = rest[i - 1];
    const bool word_ends = !absl::ascii_isspace(static_cast<unsigned char>(before));
    if (word_ends) ++words;
    const bool sentence_ends = word_ends && (before == '.' || before == '!' || before == '?');
    if (sentence_ends || rest[i] == '\n' || words == kMostQuestionWords) {
      return rest.substr(0, i);
    }
  }
  return rest;
}

}  // namespace longview::models
