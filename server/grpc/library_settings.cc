#include "server/grpc/library_settings.h"

#include <grpc/support/log.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {

namespace {

// Whether the line tells of one peer's handshake, which anybody can fail: a client that speaks
// plaintext to a port with TLS is no error of the server's.
bool TellsOfHandshake(const gpr_log_func_args& line) {
  const std::string_view file = line.file == nullptr ? "" : line.file;
  return file.ends_with("ssl_transport_security.cc") ||
         std::string_view(line.message).find("andshake failed") != std::string_view::npos;
}

// One a second.
bool MayTellOfPeer() {
  static std::atomic<int64_t> last{0};
  const int64_t now = absl::ToUnixSeconds(SteadyNow());
  return last.exchange(now, std::memory_order_relaxed) != now;
}

// The library takes a plain function, which has nowhere to keep a format.
template <LogFormat kFormat>
void WriteLine(gpr_log_func_args* args) {
  const bool of_peer = TellsOfHandshake(*args);
  if (of_peer && !MayTellOfPeer()) return;
  const LogLevel level =
      args->severity == GPR_LOG_SEVERITY_ERROR && !of_peer ? LogLevel::kError : LogLevel::kInfo;
  Log::WriteNow(kFormat, level, "grpc", {{"text", args->message}});
}

constexpr char kVariable[] = "GRPC_EXPERIMENTS";
constexpr char kExperiment[] = "tcp_read_chunks";

}  // namespace

void FormatGrpcLog(LogFormat format) {
  gpr_set_log_function(format == LogFormat::kJson ? &WriteLine<LogFormat::kJson>
                                                  : &WriteLine<LogFormat::kText>);
}

void LimitGrpcReads() {
  const char* const before = std::getenv(kVariable);
  setenv(kVariable, WithoutReadChunks(before == nullptr ? "" : before).c_str(), 1);
}

std::string WithoutReadChunks(std::string_view experiments) {
  std::string all(experiments);
  if (all.find(kExperiment) != std::string::npos) return all;
  absl::StrAppend(&all, all.empty() ? "-" : ",-", kExperiment);
  return all;
}

}  // namespace longview::server
