#include "client/cli/command_line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/nearest.h"

namespace longview::client {
namespace {

struct Command {
  std::string name;
  std::string arguments;
  std::string purpose;
};

std::vector<Command> Commands() {
  return {
      {"classify", "FILE|DIRECTORY|- ...", "names the class of every input"},
      {"detect", "FILE|DIRECTORY|- ...", "finds objects in every picture; --draw shows them"},
      {"embed", "FILE|DIRECTORY|- ...", "prints the embedding of every input"},
      {"generate", "FILE|DIRECTORY|- ...", "continues every input; on a terminal, as it comes"},
      {"models", "", "lists the server's models; --check DIR explains a model directory"},
      {"quantize", "DIR", "finds which linears of a model may be int8, on texts of yours"},
      {"estimate", "FILE|DIRECTORY|- ...", "predicts time and memory of a request, runs nothing"},
      {"rerank", "FILE|DIRECTORY|- ...", "sorts the inputs by how well they answer --query"},
      {"search", "FILE|DIRECTORY|- ... QUESTION", "finds the places that answer a question"},
      {"status", "", "says whether the server is live and ready"},
      {"bench", "FILE|DIRECTORY ...", "sends requests at random (Poisson) times, reports latency"},
  };
}

using Setter = std::function<absl::Status(CommandLine&, std::string_view value)>;

struct Flag {
  std::string name;
  std::string value;                  // Name of the value in help; empty = a switch.
  std::vector<std::string> commands;  // Empty = all.
  std::string help;
  Setter set;
};

template <typename Field>
Setter String(Field CommandLine::*field) {
  return [field](CommandLine& line, std::string_view value) {
    line.*field = std::string(value);
    return absl::OkStatus();
  };
}

Setter Switch(bool CommandLine::*field) {
  return [field](CommandLine& line, std::string_view) {
    line.*field = true;
    return absl::OkStatus();
  };
}

absl::StatusOr<int> ParseInt(std::string_view value, int low, int high) {
  int number;
  if (!absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &number) || number < low ||
      number > high) {
    return absl::InvalidArgumentError(absl::StrCat("must be an integer from ", low, " to ", high));
  }
  return number;
}

template <typename Field>
Setter Int(Field CommandLine::*field, int low, int high) {
  return [=](CommandLine& line, std::string_view value) {
    const absl::StatusOr<int> number = ParseInt(value, low, high);
    if (number.ok()) line.*field = *number;
    return number.status();
  };
}

// Above zero, or also zero.
Setter Seconds(double CommandLine::*field, bool zero_allowed) {
  return [=](CommandLine& line, std::string_view value) -> absl::Status {
    double number;
    if (!absl::SimpleAtod(absl::string_view(value.data(), value.size()), &number) ||
        !std::isfinite(number) || number < 0 || (number == 0 && !zero_allowed)) {
      return absl::InvalidArgumentError(zero_allowed ? "must be a number, 0 or more"
                                                     : "must be a number above 0");
    }
    line.*field = number;
    return absl::OkStatus();
  };
}

Setter Number(std::optional<double> CommandLine::*field) {
  return [=](CommandLine& line, std::string_view value) -> absl::Status {
    double number;
    if (!absl::SimpleAtod(absl::string_view(value.data(), value.size()), &number) ||
        !std::isfinite(number)) {
      return absl::InvalidArgumentError("must be a number");
    }
    line.*field = number;
    return absl::OkStatus();
  };
}

absl::Status AddStop(CommandLine& line, std::string_view value) {
  line.stop.emplace_back(value);
  return absl::OkStatus();
}

absl::Status SetLengths(CommandLine& line, std::string_view value) {
  line.lengths.clear();
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(value.data(), value.size()), ',');
  for (const std::string& part : parts) {
    const absl::StatusOr<int> length = ParseInt(part, 2, 1 << 20);
    if (!length.ok()) return length.status();
    line.lengths.push_back(*length);
  }
  return absl::OkStatus();
}

absl::Status SetTask(CommandLine& line, std::string_view value) {
  if (value != "classify" && value != "embed" && value != "generate") {
    return absl::InvalidArgumentError("must be classify, embed or generate");
  }
  line.task = std::string(value);
  return absl::OkStatus();
}

absl::Status SetBy(CommandLine& line, std::string_view value) {
  if (value != "words" && value != "vectors" && value != "both") {
    return absl::InvalidArgumentError("must be words, vectors or both");
  }
  line.by = std::string(value);
  return absl::OkStatus();
}

absl::Status SetNormalize(CommandLine& line, std::string_view value) {
  if (value != "true" && value != "false") {
    return absl::InvalidArgumentError("must be true or false");
  }
  line.normalize = value == "true";
  return absl::OkStatus();
}

// The values' meaning is left to the model on the server.
std::vector<Flag> GenerationFlags() {
  constexpr int kMany = std::numeric_limits<int>::max();
  const std::vector<std::string> generate = {"generate"};
  const std::vector<std::string> sized = {"generate", "estimate"};
  return {
      {"max_tokens",
       "N",
       {"generate", "estimate", "bench"},
       "new tokens, default the model's; 0 scores the input",
       Int(&CommandLine::max_tokens, 0, kMany)},
      {"n", "N", sized, "samples of each input, default 1", Int(&CommandLine::n, 1, kMany)},
      {"temperature",
       "T",
       {"generate", "bench"},
       "0 = the likeliest token",
       Number(&CommandLine::temperature)},
      {"top_p", "P", generate, "sample from the likeliest tokens of this much probability",
       Number(&CommandLine::top_p)},
      {"repetition_penalty", "X", generate, "above 1: what was there becomes less likely",
       Number(&CommandLine::repetition_penalty)},
      {"stop", "TEXT", generate, "ends a sample; may be given several times", AddStop},
      {"min_new_tokens", "N", generate, "no end before so many tokens",
       Int(&CommandLine::min_new_tokens, 0, kMany)},
      {"num_beams", "N", generate, "beam search", Int(&CommandLine::num_beams, 1, kMany)},
      {"length_penalty", "X", generate, "of beam search", Number(&CommandLine::length_penalty)},
      {"early_stopping", "", generate, "of beam search", Switch(&CommandLine::early_stopping)},
      {"no_repeat_ngram_size", "N", generate, "no sequence of so many tokens twice",
       Int(&CommandLine::no_repeat_ngram_size, 0, kMany)},
      {"logprobs", "N", generate, "with --json: log-probabilities of the tokens",
       Int(&CommandLine::logprobs, 0, kMany)},
      {"echo", "", generate, "the input comes first", Switch(&CommandLine::echo)},
      {"document", "HANDLE", generate, "the inputs continue this open document",
       String(&CommandLine::document)},
  };
}

std::vector<Flag> DetectionFlags() {
  constexpr int kMany = std::numeric_limits<int>::max();
  const std::vector<std::string> detect = {"detect"};
  return {
      {"draw", "FILE|DIRECTORY/", detect, "writes each input with boxes, labels and masks as PNG",
       String(&CommandLine::draw)},
      {"score_threshold", "X", detect, "from 0 to 1, default the model's",
       Number(&CommandLine::score_threshold)},
      {"max_detections", "N", detect, "of a picture, default the model's",
       Int(&CommandLine::max_detections, 1, kMany)},
      {"masks", "", detect, "outlines too, where the model has them", Switch(&CommandLine::masks)},
      {"tile", "PIXELS", detect, "cuts pictures into squares, each looked at by itself",
       Int(&CommandLine::tile, 1, kMany)},
      {"tile_overlap", "PIXELS", detect, "of neighbouring squares, default an eighth",
       Int(&CommandLine::tile_overlap, 0, kMany)},
  };
}

std::vector<Flag> QuantizeFlags() {
  const std::vector<std::string> quantize = {"quantize"};
  return {
      {"texts", "FILE|FOLDER", quantize,
       "of a text a line (.jsonl: an object with \"text\" a line), or of texts",
       String(&CommandLine::texts)},
      {"pictures", "FOLDER", quantize, "for models of pictures", String(&CommandLine::pictures)},
      {"dry_run", "", quantize, "writes nothing", Switch(&CommandLine::dry_run)},
  };
}

std::vector<Flag> SearchFlags() {
  constexpr int kMostPlaces = 10000;
  constexpr int kMostBytes = 64 << 20;
  const std::vector<std::string> search = {"search"};
  return {
      {"by", "words|vectors|both", search,
       "both (default) needs a model that embeds, words needs no server", SetBy},
      {"no_cache", "", search, "reads all anew, and keeps no vectors for the next question",
       Switch(&CommandLine::no_cache)},
      {"cache_mib", "N", search, "of vectors kept in ~/.cache/longview/search, default 1024",
       Int(&CommandLine::cache_mib, 0, std::numeric_limits<int>::max())},
      {"top", "N", search, "places shown, default 10", Int(&CommandLine::top, 1, kMostPlaces)},
      {"max_file_bytes", "N", search, "larger files are left out, default 1048576",
       Int(&CommandLine::max_file_bytes, 1, kMostBytes)},
      {"prompt_name", "NAME", search, "of the question, default query where the model has one",
       String(&CommandLine::prompt_name)},
  };
}

std::vector<Flag> CommonFlags() {
  constexpr int kMany = std::numeric_limits<int>::max();
  const std::vector<std::string> reading = {"classify", "detect", "embed", "generate",
                                            "estimate", "rerank", "bench"};
  std::vector<std::string> asking = reading;
  asking.push_back("search");  // It replaces what is not UTF-8 by itself.
  return {
      {"server",
       "HOST:PORT",
       {},
       "default localhost:9000, or LONGVIEW_SERVER",
       String(&CommandLine::server)},
      {"model", "NAME", asking, "needed if several loaded models have the task",
       String(&CommandLine::model)},
      {"api_key",
       "KEY",
       {},
       "sent as a bearer token, default LONGVIEW_API_KEY",
       String(&CommandLine::api_key)},
      {"tls", "", {}, "encrypted connection", Switch(&CommandLine::tls)},
      {"ca", "FILE", {}, "trust these certificates (PEM); implies --tls", String(&CommandLine::ca)},
      {"cert",
       "FILE",
       {},
       "shown to a server that asks (PEM), with --key",
       String(&CommandLine::cert)},
      {"key", "FILE", {}, "of --cert (PEM)", String(&CommandLine::key)},
      {"timeout",
       "SECONDS",
       {},
       "of each request with its repetitions, default 60, 0 = none",
       Seconds(&CommandLine::timeout_seconds, true)},
      {"json", "", {}, "one JSON object per line", Switch(&CommandLine::json)},
      {"lossy", "", reading, "replace what is not UTF-8 instead of refusing the file",
       Switch(&CommandLine::lossy)},
      {"truncate",
       "",
       {"classify", "embed", "generate", "rerank", "bench"},
       "cut what is too long; otherwise it is an error",
       Switch(&CommandLine::truncate)},
      {"jobs",
       "N",
       {"classify", "detect", "embed", "estimate", "search"},
       "requests under way at a time, default 4",
       Int(&CommandLine::jobs, 1, 1024)},
      {"top_k",
       "N",
       {"classify", "generate"},
       "labels per answer; 0 = all (default 1, with --json all); generate: likeliest tokens",
       Int(&CommandLine::top_k, 0, kMany)},
      {"image",
       "",
       {"classify"},
       "all inputs are pictures; JPEG, PNG and WebP are known without it",
       Switch(&CommandLine::image)},
      {"logits", "", {"classify"}, "with --json: the raw scores too", Switch(&CommandLine::logits)},
      {"query", "TEXT", {"rerank"}, "what the inputs are to answer", String(&CommandLine::query)},
      {"top_n", "N", {"rerank"}, "the best so many only", Int(&CommandLine::top_n, 1, kMany)},
      {"raw_scores", "", {"rerank"}, "logits instead of scores", Switch(&CommandLine::raw_scores)},
      {"pooling",
       "NAME",
       {"embed", "search"},
       "cls, mean or pooler; default the model's",
       String(&CommandLine::pooling)},
      {"normalize", "true|false", {"embed"}, "unit length; default the model's", SetNormalize},
      {"check",
       "DIR",
       {"models"},
       "explain a model directory, without a server",
       String(&CommandLine::check)},
      {"tokens",
       "N",
       {"estimate"},
       "a length in tokens instead of inputs",
       Int(&CommandLine::tokens, 1, kMany)},
      {"width",
       "N",
       {"estimate"},
       "of a picture as seen, in pixels, with --height instead of inputs",
       Int(&CommandLine::width, 1, kMany)},
      {"height", "N", {"estimate"}, "see --width", Int(&CommandLine::height, 1, kMany)},
      {"rate",
       "N",
       {"bench"},
       "requests per second on average, default 10",
       Seconds(&CommandLine::rate, false)},
      {"duration",
       "SECONDS",
       {"bench"},
       "of arrivals, default 10",
       Seconds(&CommandLine::duration, false)},
      {"seed",
       "N",
       {"generate", "bench"},
       "equal seeds, equal samples or arrivals",
       Int(&CommandLine::seed, 0, kMany)},
      {"lengths",
       "N,N,...",
       {"bench"},
       "documents of so many random tokens instead of inputs",
       SetLengths},
      {"task",
       "NAME",
       {"bench"},
       "classify, embed or generate; default what the model does",
       SetTask},
      {"help", "", {}, "this text", Switch(&CommandLine::help)},
      {"version", "", {}, "the version", Switch(&CommandLine::version)},
  };
}

std::vector<Flag> Flags() {
  std::vector<Flag> flags = CommonFlags();
  for (Flag& flag : DetectionFlags()) flags.push_back(std::move(flag));
  for (Flag& flag : GenerationFlags()) flags.push_back(std::move(flag));
  for (Flag& flag : QuantizeFlags()) flags.push_back(std::move(flag));
  for (Flag& flag : SearchFlags()) flags.push_back(std::move(flag));
  return flags;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names = {"help", "version"};
  for (const Command& command : Commands()) names.push_back(command.name);
  return names;
}

bool IsCommand(std::string_view name) {
  const std::vector<std::string> names = CommandNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool BelongsTo(const Flag& flag, std::string_view command) {
  if (flag.commands.empty() || command.empty()) return true;
  return std::find(flag.commands.begin(), flag.commands.end(), command) != flag.commands.end();
}

const Flag* Find(const std::vector<Flag>& flags, std::string_view name) {
  for (const Flag& flag : flags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

// Takes arguments[*at], and its value if that is the next argument.
absl::Status TakeFlag(const std::vector<Flag>& flags, const std::vector<std::string>& arguments,
                      size_t* at, CommandLine* line) {
  const std::string& argument = arguments[*at];
  const size_t equals = argument.find('=');
  const std::string spelled = argument.substr(0, equals);
  const Flag* flag = Find(flags, absl::StrReplaceAll(spelled.substr(2), {{"-", "_"}}));
  if (flag == nullptr) {
    std::vector<std::string> names;
    for (const Flag& known : flags) {
      if (BelongsTo(known, line->command)) names.push_back(known.name);
    }
    const std::string name = absl::StrReplaceAll(spelled.substr(2), {{"-", "_"}});
    return absl::InvalidArgumentError(
        absl::StrCat("unknown flag ", spelled.substr(0, 64), DidYouMean("--", name, names)));
  }
  if (!BelongsTo(*flag, line->command)) {
    return absl::InvalidArgumentError(absl::StrCat(line->command, " has no flag ", spelled));
  }
  std::string value;
  if (flag->value.empty()) {
    if (equals != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(spelled, " takes no value"));
    }
  } else if (equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (*at + 1 < arguments.size()) {
    value = arguments[++*at];
  } else {
    return absl::InvalidArgumentError(absl::StrCat(spelled, " needs a value"));
  }
  const absl::Status status = flag->set(*line, value);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(spelled, " ", status.message(), ", not \"", value.substr(0, 64), "\""));
}

// The last argument of a search is its question.
absl::Status TakeQuestion(CommandLine* line) {
  if (line->inputs.size() < 2) {
    return absl::InvalidArgumentError(
        "search needs files or directories and, last, a question: search FOLDER \"where is ...\"");
  }
  line->query = std::move(line->inputs.back());
  line->inputs.pop_back();
  if (absl::StripAsciiWhitespace(line->query).empty()) {
    return absl::InvalidArgumentError("search: the question, its last argument, is empty");
  }
  return absl::OkStatus();
}

// Relative paths do not count, by the XDG Base Directory Specification. Empty = there is none.
std::string CacheFolder(const Environment& environment) {
  const std::string cache = environment("XDG_CACHE_HOME").value_or("");
  if (cache.starts_with("/")) return absl::StrCat(cache, "/longview/search");
  const std::string home = environment("HOME").value_or("");
  return home.empty() ? "" : absl::StrCat(home, "/.cache/longview/search");
}

absl::Status CheckInputs(const CommandLine& line) {
  if (line.width.has_value() != line.height.has_value()) {
    return absl::InvalidArgumentError("--width and --height go together");
  }
  if (line.tokens && line.width) {
    return absl::InvalidArgumentError("--tokens is of texts, --width and --height of pictures");
  }
  if (line.command == "quantize") {
    if (line.inputs.size() != 1) {
      return absl::InvalidArgumentError("quantize needs one model directory");
    }
    if (line.texts.empty() && line.pictures.empty()) {
      return absl::InvalidArgumentError("quantize needs --texts, or --pictures");
    }
    return absl::OkStatus();
  }
  const bool replaced = (line.command == "estimate" && (line.tokens || line.width)) ||
                        (line.command == "bench" && !line.lengths.empty());
  const bool reads = line.command != "models" && line.command != "status" && !replaced;
  if (reads && line.inputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.command, " needs files or directories, or - for standard input"));
  }
  if (!reads && !line.inputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.command, " takes no inputs here: ", line.inputs[0]));
  }
  if (line.command == "rerank" && line.query.empty()) {
    return absl::InvalidArgumentError("rerank needs --query");
  }
  if (std::count(line.inputs.begin(), line.inputs.end(), "-") > 1) {
    return absl::InvalidArgumentError("standard input (-) can be read once only");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments,
                                             const Environment& environment) {
  const std::vector<Flag> flags = Flags();
  CommandLine line;
  const std::optional<std::string> server = environment("LONGVIEW_SERVER");
  if (server && !server->empty()) line.server = *server;
  line.api_key = environment("LONGVIEW_API_KEY").value_or("");
  line.cache_folder = CacheFolder(environment);
  bool flags_ended = false;
  for (size_t at = 0; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    if (!flags_ended && argument == "--") {
      flags_ended = true;
    } else if (!flags_ended && argument == "-h") {
      line.help = true;
    } else if (!flags_ended && argument.starts_with("--")) {
      if (absl::Status status = TakeFlag(flags, arguments, &at, &line); !status.ok()) return status;
    } else if (!flags_ended && argument.starts_with("-") && argument != "-") {
      return absl::InvalidArgumentError(absl::StrCat("unknown flag ", argument));
    } else if (line.command.empty()) {
      if (!IsCommand(argument)) {
        return absl::InvalidArgumentError(absl::StrCat("unknown command ", argument.substr(0, 64),
                                                       DidYouMean("", argument, CommandNames())));
      }
      if (argument == "version") line.version = true;
      // `help` alone is the program's, `help COMMAND` the command's.
      if (argument == "help") {
        line.help = true;
      } else {
        line.command = argument;
      }
    } else {
      line.inputs.push_back(argument);
    }
  }
  if (line.help || line.version) return line;
  if (line.command.empty()) return absl::InvalidArgumentError("a command is needed");
  if (line.command == "search") {
    if (absl::Status status = TakeQuestion(&line); !status.ok()) return status;
  }
  if (absl::Status status = CheckInputs(line); !status.ok()) return status;
  return line;
}

std::string HelpText(std::string_view command) {
  std::string text;
  if (command.empty()) {
    text = "usage: longview COMMAND [flags] [inputs]\n\ncommands:\n";
    for (const Command& each : Commands()) {
      absl::StrAppend(&text, "  ", each.name, std::string(10 - each.name.size(), ' '), each.purpose,
                      "\n");
    }
  }
  for (const Command& each : Commands()) {
    if (each.name != command) continue;
    absl::StrAppend(&text, "usage: longview ", each.name, " [flags]",
                    each.arguments.empty() ? "" : " ", each.arguments, "\n\n", each.purpose, "\n");
  }
  absl::StrAppend(&text, "\nflags:\n");
  for (const Flag& flag : Flags()) {
    if (command.empty() ? !flag.commands.empty() : !BelongsTo(flag, command)) continue;
    std::string name = absl::StrCat("--", flag.name, flag.value.empty() ? "" : " ", flag.value);
    if (name.size() < 24) name.resize(24, ' ');
    absl::StrAppend(&text, "  ", name, " ", flag.help, "\n");
  }
  absl::StrAppend(&text, "\nexit status: 0 all well, 1 some input failed, 2 usage, ",
                  "3 server not reached\n");
  return text;
}

}  // namespace longview::client
