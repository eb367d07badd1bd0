// The server's log: one line an event on stderr, as text for a person or JSON for machines.
//
// Thread-safe. Lines never hold user content: only names, ids, counts and times. No call waits
// for stderr: a thread writes the lines, and those that find a megabyte waiting are dropped,
// counted, and reported in a line of their own once there is room.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/time/time.h"
#include "server/log/line_queue.h"

namespace longview::server {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning", "error"; as in lines and flags.
std::string_view LogLevelName(LogLevel level);
std::optional<LogLevel> ParseLogLevel(std::string_view name);

// A named value of a line; one without a name is left out. Borrowed for the call.
struct LogField {
  std::string_view name;
  std::variant<std::string_view, double, int64_t> value;
};

class Log {
 public:
  // Writes to `descriptor`, which stays the caller's.
  Log(LogFormat format, LogLevel level, int descriptor = STDERR_FILENO);

  using Fields = std::initializer_list<LogField>;
  void Debug(std::string_view message, Fields fields = {});
  void Info(std::string_view message, Fields fields = {});
  void Warning(std::string_view message, Fields fields = {});
  void Error(std::string_view message, Fields fields = {});

  // From the next line on.
  void set_level(LogLevel level) { level_.store(level, std::memory_order_relaxed); }
  LogLevel level() const { return level_.load(std::memory_order_relaxed); }

  // Waits until the lines so far are written; at most `patience`.
  void Flush(absl::Duration patience = absl::Seconds(1));

  // Lines that found no room.
  uint64_t dropped() const { return lines_.dropped(); }

  // Writes a line to stderr at once, past the queue, if stderr takes it without waiting: for
  // libraries that log by themselves.
  static void WriteNow(LogFormat format, LogLevel level, std::string_view message, Fields fields);

  // The line without its newline, as it would be written.
  static std::string Format(LogFormat format, LogLevel level, std::string_view timestamp,
                            std::string_view message, Fields fields);

 private:
  void Write(LogLevel level, std::string_view message, Fields fields);

  const LogFormat format_;
  std::atomic<LogLevel> level_;
  LineQueue lines_;
};

}  // namespace longview::server
