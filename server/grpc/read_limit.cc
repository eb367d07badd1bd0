#include "server/grpc/read_limit.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

constexpr char kVariable[] = "GRPC_EXPERIMENTS";
constexpr char kExperiment[] = "tcp_read_chunks";

}  // namespace

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
