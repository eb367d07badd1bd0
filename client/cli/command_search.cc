#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/inputs.h"
#include "client/cli/json_lines.h"
#include "client/cli/search/best_places.h"
#include "client/cli/search/chunks.h"
#include "client/cli/search/embedder.h"
#include "client/cli/search/walk.h"
#include "client/cli/summary.h"
#include "client/cli/terminal.h"
#include "client/cli/utf8.h"

namespace longview::client {
namespace {

constexpr size_t kShownBytes = 100;       // Shown of a place's first line.
constexpr size_t kLooksForBinary = 8192;  // Bytes at a file's beginning.
constexpr size_t kNamedFiles = 3;         // In a note.

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

// The folder's files against one question.
class Search {
 public:
  Search(const CommandLine& line, Console& console, const Embedder& embedder,
         std::vector<float> question)
      : line_(line), console_(console), embedder_(embedder), question_(std::move(question)) {}

  // Reads the files, several at a time. Vectors are compared as they come, and not kept.
  void Run(const std::vector<std::string>& paths) {
    std::atomic<size_t> next = 0;
    std::vector<std::thread> workers;
    for (size_t i = 0; i < std::min(static_cast<size_t>(line_.jobs), paths.size()); ++i) {
      workers.emplace_back([&] {
        for (size_t index = next++; index < paths.size(); index = next++) {
          Done(paths[index], ReadFile(paths[index]), paths.size());
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    if (console_.err_is_terminal) console_.err << "\r\033[K";
  }

  void PrintPlaces() {
    for (const Place& place : best_.Take()) {
      if (line_.json) {
        nlohmann::ordered_json object;
        object["input"] = place.path;
        object["start_line"] = place.first_line;
        object["end_line"] = place.last_line;
        object["score"] = place.score;
        object["text"] = place.text;
        console_.out << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                     << "\n";
      } else {
        const bool on = console_.out_colors;
        console_.out << Paint(on, Color::kPlace, place.path) << ":" << place.first_line << "-"
                     << place.last_line << "\t"
                     << Paint(on, Color::kFaint, absl::StrFormat("%.4f", place.score)) << "\t"
                     << FirstLine(place.text) << "\n";
      }
    }
  }

  bool failed() const { return failed_; }

  std::string SummaryText(double seconds) const {
    std::string text = absl::StrCat(summary_.Text(seconds), "; ", places_, " places compared");
    if (binary_ > 0) absl::StrAppend(&text, "; left out: ", binary_.load(), " binary");
    return text;
  }

 private:
  Outcome ReadFile(const std::string& path) {
    Outcome outcome;
    absl::StatusOr<std::string> text = ReadInput(
        {path, absl::OkStatus()},
        {.binary = true, .max_bytes = static_cast<uint64_t>(line_.max_file_bytes)}, console_.in);
    if (!text.ok()) {
      outcome.status = grpc::Status(static_cast<grpc::StatusCode>(text.status().code()),
                                    std::string(text.status().message()));
      return outcome;
    }
    if (text->substr(0, kLooksForBinary).find('\0') != std::string::npos) {
      ++binary_;
      return outcome;
    }
    const std::string valid =
        FirstInvalidUtf8(*text) ? ReplaceInvalidUtf8(*text) : *std::move(text);
    Embedder::Cost cost;
    outcome.status = embedder_.Read(
        valid, CutIntoChunks(valid),
        [&](const Chunk& chunk, std::span<const float> vector) {
          Compare(path, valid, chunk, vector);
        },
        &cost);
    outcome.tokens = cost.tokens;
    outcome.truncated_tokens = cost.truncated_tokens;
    return outcome;
  }

  void Compare(const std::string& path, const std::string& text, const Chunk& chunk,
               std::span<const float> vector) {
    const size_t size = std::min(vector.size(), question_.size());
    const float score =
        std::inner_product(vector.begin(), vector.begin() + static_cast<std::ptrdiff_t>(size),
                           question_.begin(), 0.0f);
    std::lock_guard<std::mutex> lock(mutex_);
    ++places_;
    if (!best_.MayKeep(score)) return;
    best_.Add({score, path, chunk.first_line, chunk.last_line,
               text.substr(chunk.begin, chunk.end - chunk.begin)});
  }

  void Done(const std::string& path, const Outcome& outcome, size_t count) {
    std::lock_guard<std::mutex> lock(mutex_);
    summary_.Add(outcome);
    if (console_.err_is_terminal) console_.err << "\r\033[K";
    if (!outcome.status.ok()) {
      failed_ = true;
      if (line_.json) {
        console_.out << ErrorLine(path, outcome.status) << "\n";
      } else {
        Error(console_) << path << ": " << CodeName(outcome.status.error_code()) << ": "
                        << outcome.status.error_message() << "\n";
      }
    }
    if (console_.err_is_terminal) console_.err << ++done_ << " of " << count << std::flush;
  }

  const CommandLine& line_;
  Console& console_;
  const Embedder& embedder_;
  const std::vector<float> question_;
  std::atomic<int64_t> binary_ = 0;

  std::mutex mutex_;  // Guards what follows, and the console while workers run.
  BestPlaces best_{static_cast<size_t>(line_.top)};
  Summary summary_;
  int64_t places_ = 0;
  size_t done_ = 0;
  bool failed_ = false;
};

void NoteLeftOut(const std::vector<std::string>& paths, const std::string& why, Console& console) {
  if (paths.empty()) return;
  console.err << "longview: left out, " << why << ": ";
  for (size_t i = 0; i < std::min(paths.size(), kNamedFiles); ++i) {
    console.err << (i == 0 ? "" : ", ") << paths[i];
  }
  if (paths.size() > kNamedFiles) console.err << " and " << paths.size() - kNamedFiles << " more";
  console.err << "\n";
}

}  // namespace

ExitCode RunSearch(const CommandLine& line, Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const ExitCode chosen = ChooseModel(*connection.client, line, "embedding", console, &model);
  if (chosen != kAllWell) return chosen;
  Embedder embedder(*connection.client, {.model = model.name(),
                                         .max_tokens = model.max_tokens(),
                                         .pooling = line.pooling,
                                         .prompt_name = line.prompt_name});
  std::vector<float> question;
  if (const grpc::Status status = embedder.Ask(line.query, &question); !status.ok()) {
    Error(console) << "the question: " << CodeName(status.error_code()) << ": "
                   << status.error_message() << "\n";
    return kSomeInputFailed;
  }
  const FoundFiles files = FindFiles(line.inputs, line.max_file_bytes);
  Search search(line, console, embedder, std::move(question));
  search.Run(files.paths);
  search.PrintPlaces();
  NoteLeftOut(files.too_large, absl::StrCat("larger than --max_file_bytes=", line.max_file_bytes),
              console);
  NoteLeftOut(files.unreadable, "cannot be listed", console);
  if (console.err_is_terminal) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    console.err << search.SummaryText(seconds.count())
                << (embedder.late() ? "" : "; this model embeds each place by itself") << "\n";
  }
  if (!files.paths.empty()) return search.failed() ? kSomeInputFailed : kAllWell;
  Error(console) << "no text files there\n";
  return kSomeInputFailed;
}

}  // namespace longview::client
