// The arguments of `longview`: one subcommand, its flags, its inputs.
//
// Flags may stand anywhere after the subcommand, as --name=value or --name value; dashes and
// underscores in names are the same; "--" ends the flags; "-" is an input (standard input).
//
// Thread-safe: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::client {

// Exit codes of the process.
enum ExitCode { kAllWell = 0, kSomeInputFailed = 1, kUsage = 2, kServerNotReached = 3 };

struct CommandLine {
  // classify, detect, embed, generate, models, quantize, estimate, rerank, search, status, bench;
  // version.
  std::string command;
  std::vector<std::string> inputs;  // Paths; "-" = standard input. quantize: the directory.
  bool help = false;
  bool version = false;

  // The connection.
  std::string server = "localhost:9000";
  std::string model;  // Empty = the only loaded model with the task.
  std::string api_key;
  bool tls = false;
  std::string ca;
  std::string cert;
  std::string key;
  double timeout_seconds = 60;

  // Inputs and answers.
  bool json = false;
  bool lossy = false;
  bool truncate = false;
  int jobs = 4;                   // Requests under way at a time.
  std::optional<int> top_k;       // classify: 0 = all labels; generate: 0 = off.
  bool logits = false;            // classify
  bool image = false;             // classify: all inputs are pictures, whatever they begin with.
  std::string query;              // rerank; search: the last argument.
  std::optional<int> top_n;       // rerank; unset = all.
  bool raw_scores = false;        // rerank
  std::string pooling;            // embed, search
  std::optional<bool> normalize;  // embed
  std::string check;              // models: a directory to explain.
  std::optional<int> tokens;      // estimate: a length instead of a text.
  std::optional<int> width;       // estimate: width of a picture, instead of inputs.
  std::optional<int> height;      // estimate: height of that picture; set if width is.

  // quantize; paths, empty = none.
  std::string texts;
  std::string pictures;
  bool dry_run = false;

  // search
  std::string by = "both";       // words, vectors or both.
  std::string cache_folder;      // Folder of kept vectors; empty = none. From the environment.
  int cache_mib = 1024;          // Vectors kept at most; 0 = none.
  bool no_cache = false;         // Neither looks for kept vectors nor keeps any.
  int top = 10;                  // Places shown.
  int max_file_bytes = 1 << 20;  // Larger files are left out.
  std::optional<std::string> prompt_name;  // The question's; unset = "query" where there is one.

  // detect; unset = the model's.
  std::string draw;  // File or folder of pictures with detections (draw/detections.h).
  std::optional<double> score_threshold;
  std::optional<int> max_detections;
  bool masks = false;
  std::optional<int> tile;          // Pixels a side; unset = the picture in one piece.
  std::optional<int> tile_overlap;  // Unset = an eighth of it.

  // generate; unset = the model's. estimate: max_tokens and n.
  std::optional<int> max_tokens;
  std::optional<int> min_new_tokens;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> repetition_penalty;
  std::vector<std::string> stop;
  std::optional<int> n;
  std::optional<int> num_beams;
  std::optional<double> length_penalty;
  std::optional<int> no_repeat_ngram_size;
  bool early_stopping = false;
  std::optional<int> logprobs;
  bool echo = false;
  std::string document;     // A handle that the inputs continue.
  std::optional<int> seed;  // Seed of sampling, and of bench's arrivals; unset = 1 there.

  // bench
  double rate = 10;          // Requests per second, on average.
  double duration = 10;      // Seconds of arrivals.
  std::vector<int> lengths;  // Tokens of made-up documents, instead of inputs.
  std::string task;          // classify, embed or generate; empty = what the model does.
};

// Reads the value of an environment variable; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// arguments: without the program's name. The error's message is meant for the user.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments,
                                             const Environment& environment);

// Whether the inputs are pictures, not texts.
inline bool ReadsPictures(const CommandLine& line) {
  return line.image || line.command == "detect";
}

// Whether those inputs that are pictures by their first bytes are read as such.
inline bool TakesPictures(const CommandLine& line) { return line.command == "classify"; }

// The help text of a subcommand; of the program if it is empty.
std::string HelpText(std::string_view command);

}  // namespace longview::client
