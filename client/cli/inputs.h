// Inputs of the command line: files, directories, standard input; and which of them are pictures,
// by their first bytes.
//
// Not thread-safe where standard input is concerned: it is read once, by one thread.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longview::client {

// One document: a path to read, "-" for standard input, or the reason why there is none.
struct Input {
  std::string path;
  absl::Status status;
};

// The documents that the arguments name, in order.
//
// A directory stands for the regular files below it, in path order; names that begin with a dot
// are skipped there, links to directories are not followed. A path that does not exist or cannot
// be listed stays in the list with its error, so that the others still run.
std::vector<Input> ListInputs(const std::vector<std::string>& arguments);

struct ReadOptions {
  bool binary = false;    // Not text: any bytes.
  bool pictures = false;  // Texts, and pictures as they are.
  bool lossy = false;     // Invalid UTF-8 becomes U+FFFD instead of an error.
  uint64_t max_bytes = 64 << 20;
};

// The text of one input; standard_input is read for the path "-".
//
// Errors: NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (too large, not UTF-8, a picture where
// texts are read; the message has the value and the limit, the caller adds the path).
absl::StatusOr<std::string> ReadInput(const Input& input, const ReadOptions& options,
                                      std::istream& standard_input);

// "JPEG", "PNG" or "WebP", which the server decodes; "" for anything else.
std::string_view PictureFormat(std::string_view content);

// The picture format of the file at `path`, by its first bytes; "" if it cannot be read.
std::string_view PictureFormatOfFile(const std::string& path);

}  // namespace longview::client
