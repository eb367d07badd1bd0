// Limits of the machine, or of the container around the process.
#pragma once

#include <cstdint>
#include <string>

namespace longview::server {

// CPUs the process may use: the cgroup quota (v2 cpu.max or v1 cfs_quota) rounded up, bounded
// by the affinity mask; at least 1. `root` is "/" outside tests.
int CpuQuota(const std::string& root = "/");

// Memory still available to the process: the cgroup limit less its use (v2 or v1), bounded by
// MemAvailable; in bytes.
uint64_t AvailableMemory(const std::string& root = "/");

// The folder of the running program.
std::string ProgramFolder();

}  // namespace longview::server
