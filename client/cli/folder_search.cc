#include "client/cli/folder_search.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/connection.h"
#include "client/cli/inputs.h"
#include "client/cli/json_lines.h"
#include "client/cli/search/ranking.h"
#include "client/cli/terminal.h"
#include "client/cli/utf8.h"

namespace longview::client {
namespace {

constexpr size_t kShownBytes = 100;       // Shown of a place's first line.
constexpr size_t kLooksForBinary = 8192;  // Bytes at a file's beginning.

// The first line of a chunk without what a terminal would obey.
std::string FirstLine(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  for (char& byte : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(byte))) byte = ' ';
  }
  line = std::string(absl::StripAsciiWhitespace(line));
  if (line.size() <= kShownBytes) return line;
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return line.substr(0, end) + " …";
}

}  // namespace

void FolderSearch::Run(const std::vector<std::string>& paths) {
  paths_ = paths;
  results_.resize(paths.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> workers;
  for (size_t i = 0; i < std::min(static_cast<size_t>(line_.jobs), paths.size()); ++i) {
    workers.emplace_back([&] {
      PassageReader reader(question_);
      for (size_t index = next++; index < paths.size(); index = next++) {
        Done(paths[index], ReadFile(index, reader));
      }
      absl::MutexLock lock(&mutex_);
      if (not_kept_.ok()) not_kept_ = reader.not_kept();
      kept_ = kept_ || reader.kept();
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (console_.err_is_terminal) console_.err << "\r\033[K";
}

void FolderSearch::PrintPlaces() {
  for (const Place& place : BestOfAll()) {
    const std::optional<std::string> text = TextOf(place);
    if (text) Print(place, *text);
  }
}

std::string FolderSearch::SummaryText(double seconds) const {
  absl::MutexLock lock(&mutex_);
  std::string text = absl::StrCat(summary_.Text(seconds), "; ", places_, " places compared");
  if (binary_ > 0) absl::StrAppend(&text, "; left out: ", binary_.load(), " binary");
  return text;
}

absl::StatusOr<std::string> FolderSearch::TextOfFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadInput(
      {path, absl::OkStatus()},
      {.binary = true, .max_bytes = static_cast<uint64_t>(line_.max_file_bytes)}, console_.in);
  if (!text.ok()) return text;
  if (text->substr(0, kLooksForBinary).find('\0') != std::string::npos) {
    ++binary_;
    return std::string();
  }
  return FirstInvalidUtf8(*text) ? ReplaceInvalidUtf8(*text) : *std::move(text);
}

Outcome FolderSearch::ReadFile(size_t index, PassageReader& reader) {
  Outcome outcome;
  absl::StatusOr<std::string> text = TextOfFile(paths_[index]);
  if (!text.ok()) {
    outcome.status = grpc::Status(static_cast<grpc::StatusCode>(text.status().code()),
                                  std::string(text.status().message()));
    return outcome;
  }
  Embedder::Cost cost;
  FileResult& result = results_[index];
  outcome.status = reader.Read(paths_[index], *text, &result.passages, &cost);
  outcome.tokens = cost.tokens;
  outcome.truncated_tokens = cost.truncated_tokens;
  if (!outcome.status.ok()) result.passages.clear();
  result.digest = VectorStore::KeyOf("", *text);
  if (paths_[index] == "-") result.text = *std::move(text);
  return outcome;
}

std::vector<Place> FolderSearch::BestOfAll() {
  std::vector<WordCounts> words;
  std::vector<double> cosines;
  for (FileResult& result : results_) {
    for (Passage& passage : result.passages) {
      words.push_back(std::move(passage.words));
      cosines.push_back(passage.cosine);
    }
  }
  const bool by_words = !question_.stems.empty(), by_vectors = question_.embedder != nullptr;
  const std::vector<double> bm25 = Bm25Scores(words);
  const std::vector<double> scores = by_words && by_vectors ? SumOfZScores(bm25, cosines)
                                     : by_words             ? bm25
                                                            : cosines;
  places_ = std::ssize(scores);
  BestPlaces best(static_cast<size_t>(line_.top));
  size_t at = 0;
  for (size_t i = 0; i < results_.size(); ++i) {
    for (const Passage& passage : results_[i].passages) {
      Place place = {scores[at], paths_[i], passage.chunk, i};
      if (by_words) place.bm25 = bm25[at];
      if (by_vectors) place.cosine = cosines[at];
      if (best.MayKeep(scores[at])) best.Add(std::move(place));
      ++at;
    }
  }
  return best.Take();
}

std::optional<std::string> FolderSearch::TextOf(const Place& place) {
  const FileResult& result = results_[place.file];
  std::string text = result.text;
  if (place.path != "-") {
    absl::StatusOr<std::string> read = TextOfFile(place.path);
    if (!read.ok() || VectorStore::KeyOf("", *read) != result.digest) {
      absl::MutexLock lock(&mutex_);
      failed_ = true;
      PrintError(place.path,
                 grpc::Status(grpc::StatusCode::ABORTED, "changed while it was searched"));
      return std::nullopt;
    }
    text = *std::move(read);
  }
  return text.substr(place.chunk.begin, place.chunk.end - place.chunk.begin);
}

void FolderSearch::Print(const Place& place, const std::string& text) {
  if (line_.json) {
    nlohmann::ordered_json object;
    object["input"] = place.path;
    object["start_line"] = place.chunk.first_line;
    object["end_line"] = place.chunk.last_line;
    object["score"] = place.score;
    object["text"] = text;
    if (place.bm25) object["bm25"] = *place.bm25;
    if (place.cosine) object["cosine"] = *place.cosine;
    console_.out << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  const bool on = console_.out_colors;
  console_.out << Paint(on, Color::kPlace, place.path) << ":" << place.chunk.first_line << "-"
               << place.chunk.last_line << "\t"
               << Paint(on, Color::kFaint, absl::StrFormat("%.4f", place.score)) << "\t"
               << FirstLine(text) << "\n";
}

void FolderSearch::PrintError(const std::string& path, const grpc::Status& status) {
  if (line_.json) {
    console_.out << ErrorLine(path, status) << "\n";
  } else {
    Error(console_) << path << ": " << CodeName(status.error_code()) << ": "
                    << status.error_message() << "\n";
  }
}

void FolderSearch::Done(const std::string& path, const Outcome& outcome) {
  absl::MutexLock lock(&mutex_);
  summary_.Add(outcome);
  if (console_.err_is_terminal) console_.err << "\r\033[K";
  if (!outcome.status.ok()) {
    failed_ = true;
    PrintError(path, outcome.status);
  }
  if (console_.err_is_terminal) {
    console_.err << ++done_ << " of " << paths_.size() << std::flush;
  }
}

}  // namespace longview::client
