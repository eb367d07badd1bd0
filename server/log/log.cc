#include "server/log/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/log/bounded_write.h"

namespace longview::server {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"debug", "info", "warning", "error"};

// Most bytes of lines that wait to be written.
constexpr size_t kMaxBytes = 1 << 20;

std::string Timestamp() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
}

// Whether JSON writes the string as it is, which holds for most strings of most lines.
bool IsPlain(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; });
}

void AppendJson(std::string_view value, std::string& line) {
  if (IsPlain(value)) {
    line.append(1, '"').append(value).append(1, '"');
    return;
  }
  // Invalid UTF-8 (a file name, say) must not lose the line.
  const nlohmann::json json = value;
  line += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename Number>
void AppendJson(Number value, std::string& line) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) {
      line += "null";
      return;
    }
  }
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  line.append(digits.data(), end);
}

void AppendJson(const LogField& field, std::string& line) {
  std::visit([&line](const auto& value) { AppendJson(value, line); }, field.value);
}

}  // namespace

std::string_view LogLevelName(LogLevel level) { return kLevelNames[static_cast<size_t>(level)]; }

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

Log::Log(LogFormat format, LogLevel level, int descriptor)
    : format_(format), level_(level), lines_(descriptor, kMaxBytes, [format](uint64_t lost) {
        return Format(format, LogLevel::kWarning, Timestamp(), "log lines dropped",
                      {{"lines", static_cast<int64_t>(lost)}});
      }) {}

void Log::Debug(std::string_view message, Fields fields) {
  Write(LogLevel::kDebug, message, fields);
}
void Log::Info(std::string_view message, Fields fields) { Write(LogLevel::kInfo, message, fields); }
void Log::Warning(std::string_view message, Fields fields) {
  Write(LogLevel::kWarning, message, fields);
}
void Log::Error(std::string_view message, Fields fields) {
  Write(LogLevel::kError, message, fields);
}
void Log::Flush(absl::Duration patience) { lines_.Flush(patience); }

std::string Log::Format(LogFormat format, LogLevel level, std::string_view timestamp,
                        std::string_view message, Fields fields) {
  std::string line;
  line.reserve(256);
  if (format == LogFormat::kJson) {
    line = "{\"ts\":";
    AppendJson(timestamp, line);
    line += ",\"level\":";
    AppendJson(LogLevelName(level), line);
    line += ",\"msg\":";
    AppendJson(message, line);
    for (const LogField& field : fields) {
      if (field.name.empty()) continue;
      line += ',';
      AppendJson(field.name, line);
      line += ':';
      AppendJson(field, line);
    }
    line += '}';
    return line;
  }
  line.append(timestamp).append(" ").append(LogLevelName(level)).append(" ").append(message);
  for (const LogField& field : fields) {
    if (field.name.empty()) continue;
    line.append(" ").append(field.name).append("=");
    AppendJson(field, line);
  }
  return line;
}

void Log::WriteNow(LogFormat format, LogLevel level, std::string_view message, Fields fields) {
  const std::string line = Format(format, level, Timestamp(), message, fields) + '\n';
  BoundedWrite(STDERR_FILENO, line, absl::ZeroDuration());
}

void Log::Write(LogLevel level, std::string_view message, Fields fields) {
  if (level < this->level()) return;
  lines_.Add(Format(format_, level, Timestamp(), message, fields));
}

}  // namespace longview::server
