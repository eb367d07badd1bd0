#include "server/log/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longview::server {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"debug", "info", "warning", "error"};

nlohmann::json ToJson(const LogField& field) {
  return std::visit([](const auto& value) { return nlohmann::json(value); }, field.value);
}

// Invalid UTF-8 (a file name, say) must not lose the line.
std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string_view LogLevelName(LogLevel level) { return kLevelNames[static_cast<size_t>(level)]; }

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

class Log::Impl {
 public:
  Impl(LogFormat format, LogLevel level)
      : format(format),
        level(level),
        logger("longview", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_pattern("%v");
    logger.set_level(spdlog::level::trace);
    logger.flush_on(spdlog::level::warn);
  }

  const LogFormat format;
  const LogLevel level;
  spdlog::logger logger;
};

Log::Log(LogFormat format, LogLevel level) : impl_(std::make_unique<Impl>(format, level)) {}
Log::~Log() = default;

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
void Log::Flush() { impl_->logger.flush(); }

std::string Log::Format(LogFormat format, LogLevel level, std::string_view timestamp,
                        std::string_view message, Fields fields) {
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json line = {
        {"ts", timestamp}, {"level", LogLevelName(level)}, {"msg", message}};
    for (const LogField& field : fields) line[std::string(field.name)] = ToJson(field);
    return Dump(line);
  }
  std::string line(timestamp);
  line.append(" ").append(LogLevelName(level)).append(" ").append(message);
  for (const LogField& field : fields) {
    line.append(" ").append(field.name).append("=").append(Dump(ToJson(field)));
  }
  return line;
}

void Log::Write(LogLevel level, std::string_view message, Fields fields) {
  if (level < impl_->level) return;
  const std::string timestamp =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  impl_->logger.log(level >= LogLevel::kWarning ? spdlog::level::warn : spdlog::level::info, "{}",
                    Format(impl_->format, level, timestamp, message, fields));
}

}  // namespace longview::server
