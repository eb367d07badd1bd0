#include "server/config/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/config/byte_size.h"

namespace longview::server {
namespace {

// A file system root with just the files a test writes.
class HostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = absl::StrCat(::testing::TempDir(), "/longview_host_test_", getpid(), "/");
    std::filesystem::remove_all(root_);
  }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(HostTest, QuotaOfCgroupV2RoundsUp) {
  Write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 1);
}

TEST_F(HostTest, QuotaOfCgroupV1) {
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota(root_), 1);
}

TEST_F(HostTest, NoQuotaIsTheAffinityMask) {
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  const int all = CpuQuota(root_);
  EXPECT_GE(all, 1);
  Write("sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(CpuQuota(root_), all);
}

TEST_F(HostTest, MemoryIsTheSmallerOfHostAndGroup) {
  Write("proc/meminfo", "MemTotal: 4096 kB\nMemAvailable:    2048 kB\n");
  EXPECT_EQ(AvailableMemory(root_), 2048u << 10);
  Write("sys/fs/cgroup/memory.max", "1048576\n");
  Write("sys/fs/cgroup/memory.current", "524288\n");
  EXPECT_EQ(AvailableMemory(root_), 524288u);
  Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(AvailableMemory(root_), 2048u << 10);
}

TEST_F(HostTest, PageCacheOfAGroupIsNotUsed) {
  Write("proc/meminfo", "MemAvailable:    20480 kB\n");
  Write("sys/fs/cgroup/memory.max", "1048576\n");
  Write("sys/fs/cgroup/memory.current", "1048000\n");
  Write("sys/fs/cgroup/memory.stat",
        "anon 300000\nfile 700000\nshmem 100000\ninactive_file 500000\nactive_file 100000\n");
  EXPECT_EQ(AvailableMemory(root_), 1048576u - 1048000 + 600000);
}

TEST_F(HostTest, PageCacheOfAnOldGroupIsNotUsed) {
  Write("proc/meminfo", "MemAvailable:    20480 kB\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
  Write("sys/fs/cgroup/memory/memory.stat",
        "inactive_file 7\ntotal_inactive_file 200000\ntotal_active_file 300000\n");
  EXPECT_EQ(AvailableMemory(root_), 1048576u - 1000000 + 500000);
}

TEST(ByteSizeTest, Parses) {
  EXPECT_EQ(*ParseBytes("0"), 0u);
  EXPECT_EQ(*ParseBytes("64MiB"), 64u << 20);
  EXPECT_EQ(*ParseBytes("3TiB"), uint64_t{3} << 40);
  EXPECT_EQ(*ParseBytesOf("25%", 1000), 250u);
  EXPECT_EQ(*ParseBytesOf("1KiB", 1000), 1024u);
  for (const char* bad : {"", "x", "-1", "1.5MiB", "64mb", "64 MiB", "99999999999999999999",
                          "18446744073709551615KiB"}) {
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
  }
  for (const char* bad : {"0%", "101%", "%", "2x%"}) EXPECT_FALSE(ParseBytesOf(bad, 1).ok()) << bad;
}

}  // namespace
}  // namespace longview::server
