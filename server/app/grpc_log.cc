#include "server/app/grpc_log.h"

#include <grpc/support/log.h>

namespace longview::server {
namespace {

// The library takes a plain function, which has nowhere to keep a format.
template <LogFormat kFormat>
void WriteLine(gpr_log_func_args* args) {
  const LogLevel level =
      args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kError : LogLevel::kInfo;
  Log::WriteNow(kFormat, level, "grpc", {{"text", args->message}});
}

}  // namespace

void FormatGrpcLog(LogFormat format) {
  gpr_set_log_function(format == LogFormat::kJson ? &WriteLine<LogFormat::kJson>
                                                  : &WriteLine<LogFormat::kText>);
}

}  // namespace longview::server
