// The server's log: one line an event on stderr, as text for a person or JSON for machines.
//
// Wraps spdlog; no other file includes it. Thread-safe. Lines never hold user content: only
// names, ids, counts and times.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

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
  Log(LogFormat format, LogLevel level);
  ~Log();

  using Fields = std::initializer_list<LogField>;
  void Debug(std::string_view message, Fields fields = {});
  void Info(std::string_view message, Fields fields = {});
  void Warning(std::string_view message, Fields fields = {});
  void Error(std::string_view message, Fields fields = {});
  void Flush();

  // The line without its newline, as it would be written: for tests.
  static std::string Format(LogFormat format, LogLevel level, std::string_view timestamp,
                            std::string_view message, Fields fields);

 private:
  class Impl;
  void Write(LogLevel level, std::string_view message, Fields fields);
  std::unique_ptr<Impl> impl_;
};

}  // namespace longview::server
