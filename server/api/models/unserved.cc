#include "server/api/models/unserved.h"

#include <array>
#include <string>

#include "server/errors.h"

namespace longview::server {
namespace {

constexpr std::string_view kSharedMemory =
    "shared memory is not served: send tensors in the request, as raw_input_contents over gRPC or "
    "as binary data over HTTP";
constexpr std::string_view kTrace =
    "trace settings are not served: --otlp_endpoint sends a span for each call, and "
    "--trace_sample_ratio says for how many";
constexpr std::string_view kLog =
    "log settings are not served: --log_level says what is logged, and SIGHUP reads it again from "
    "the --config file";

}  // namespace

std::span<const char* const> UnservedMethods() {
  static constexpr std::array<const char*, 8> kMethods = {"SystemSharedMemoryStatus",
                                                          "SystemSharedMemoryRegister",
                                                          "SystemSharedMemoryUnregister",
                                                          "CudaSharedMemoryStatus",
                                                          "CudaSharedMemoryRegister",
                                                          "CudaSharedMemoryUnregister",
                                                          "TraceSetting",
                                                          "LogSettings"};
  return kMethods;
}

absl::Status UnservedMethod(std::string_view method) {
  const std::string_view instead = method == "TraceSetting"  ? kTrace
                                   : method == "LogSettings" ? kLog
                                                             : kSharedMemory;
  return MakeError(absl::StatusCode::kUnimplemented, std::string(instead),
                   {.reason = "EXTENSION_NOT_SERVED"});
}

std::string_view InsteadOfPath(std::string_view path) {
  constexpr std::string_view kRoot = "/v2/";
  if (!path.starts_with(kRoot)) return "";
  path.remove_prefix(kRoot.size());
  const std::string_view first = path.substr(0, path.find('/'));
  if (first == "systemsharedmemory" || first == "cudasharedmemory") return kSharedMemory;
  if (first == "logging") return kLog;
  const bool of_model = first == "models" && path.ends_with("/trace/setting");
  return of_model || path == "trace/setting" ? kTrace : "";
}

}  // namespace longview::server
