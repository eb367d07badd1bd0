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

// Bytes of files that a group's memory holds and gives back when it needs room: the lists of
// memory.stat, without what lies in tmpfs. `prefix` as its version of cgroups writes it.
double PageCache(const std::string& path, const std::string& prefix) {
  double bytes = 0;
  std::istringstream lines(ReadFile(path));
  double value = 0;
  for (std::string name; lines >> name >> value;) {
    if (name == prefix + "inactive_file" || name == prefix + "active_file") bytes += value;
  }
  return bytes;
}

// Memory a group may still take: its limit less what it uses and cannot give back.
double CgroupMemory(const std::string& root) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto left = [](double limit, double used, double cached) {
    return limit - std::max(0.0, used - cached);
  };
  const std::string v2 = root + "sys/fs/cgroup/";
  if (const double limit = ReadNumber(v2 + "memory.max", kNone); limit != kNone) {
    return left(limit, ReadNumber(v2 + "memory.current", 0), PageCache(v2 + "memory.stat", ""));
  }
  const std::string v1 = v2 + "memory/memory.";
  return left(ReadNumber(v1 + "limit_in_bytes", kNone), ReadNumber(v1 + "usage_in_bytes", 0),
              PageCache(v1 + "stat", "total_"));
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
