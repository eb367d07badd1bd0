#include "server/config/host.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace longview::server {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The first number of a file; `missing` if there is none ("max", no such file).
double ReadNumber(const std::string& path, double missing) {
  std::istringstream text(ReadFile(path));
  double number = 0;
  return (text >> number) ? number : missing;
}

double CgroupCpus(const std::string& root) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::istringstream v2(ReadFile(root + "sys/fs/cgroup/cpu.max"));
  double quota = 0, period = 0;
  if (v2 >> quota >> period && period > 0) return quota / period;
  quota = ReadNumber(root + "sys/fs/cgroup/cpu/cpu.cfs_quota_us", -1);
  period = ReadNumber(root + "sys/fs/cgroup/cpu/cpu.cfs_period_us", 0);
  return quota > 0 && period > 0 ? quota / period : kNone;
}

double CgroupMemory(const std::string& root) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const double v2 = ReadNumber(root + "sys/fs/cgroup/memory.max", kNone);
  if (v2 != kNone) return v2 - ReadNumber(root + "sys/fs/cgroup/memory.current", 0);
  const double v1 = ReadNumber(root + "sys/fs/cgroup/memory/memory.limit_in_bytes", kNone);
  return v1 - ReadNumber(root + "sys/fs/cgroup/memory/memory.usage_in_bytes", 0);
}

}  // namespace

int CpuQuota(const std::string& root) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int visible = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
  const double quota = std::ceil(CgroupCpus(root) - 1e-9);
  return std::max(1, static_cast<int>(std::min<double>(visible, quota)));
}

uint64_t AvailableMemory(const std::string& root) {
  double available = std::numeric_limits<double>::infinity();
  std::istringstream lines(ReadFile(root + "proc/meminfo"));
  for (std::string name; lines >> name;) {
    double kib = 0;
    if (name == "MemAvailable:" && lines >> kib) available = kib * 1024;
  }
  available = std::min(available, CgroupMemory(root));
  return std::isfinite(available) && available > 0 ? static_cast<uint64_t>(available) : 0;
}

std::string ProgramFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace longview::server
