#include "server/metrics/process_metrics.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace longview::server {
namespace {

// Fields of /proc/self/stat that are used, counted from 1 as in proc(5).
constexpr int kUserTicks = 14;
constexpr int kSystemTicks = 15;
constexpr int kStartTicks = 22;
constexpr int kResidentPages = 24;

// The numeric fields after the program's name, which may itself hold blanks and brackets.
std::vector<double> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > line.size()) return {};
  std::istringstream rest(line.substr(name_end + 4));  // Past ") S".
  return {std::istream_iterator<double>(rest), std::istream_iterator<double>()};
}

std::optional<double> StatField(const std::vector<double>& fields, int number) {
  constexpr int kFirst = 4;  // Fields 1 to 3 are pid, name and state.
  const size_t index = number - kFirst;
  if (index >= fields.size()) return std::nullopt;
  return fields[index];
}

std::optional<double> BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return std::nullopt;
}

std::optional<double> OpenFiles() {
  std::error_code error;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return std::nullopt;
  // The iterator's own descriptor is among them.
  return static_cast<double>(std::distance(begin(files), end(files)) - 1);
}

prometheus::MetricFamily Single(std::string name, std::string help, prometheus::MetricType type,
                                double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  metric.counter.value = value;
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  family.metric = {metric};
  return family;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  using prometheus::MetricType;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const std::vector<double> stat = StatFields();
  std::vector<prometheus::MetricFamily> families;

  const auto user = StatField(stat, kUserTicks);
  const auto system = StatField(stat, kSystemTicks);
  if (user && system) {
    families.push_back(Single("process_cpu_seconds_total", "User and system CPU time spent.",
                              MetricType::Counter, (*user + *system) / ticks));
  }
  if (const auto pages = StatField(stat, kResidentPages)) {
    families.push_back(Single("process_resident_memory_bytes", "Resident memory.",
                              MetricType::Gauge,
                              *pages * static_cast<double>(sysconf(_SC_PAGESIZE))));
  }
  if (const auto files = OpenFiles()) {
    families.push_back(
        Single("process_open_fds", "Open file descriptors.", MetricType::Gauge, *files));
  }
  const auto boot = BootTime();
  const auto start = StatField(stat, kStartTicks);
  if (boot && start) {
    families.push_back(Single("process_start_time_seconds", "Start time since the Unix epoch.",
                              MetricType::Gauge, *boot + *start / ticks));
  }
  return families;
}

}  // namespace longview::server
