#include "server/app/memory_keeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace longview::server {
namespace {

// Memory of this process in MiB.
double Resident() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096 / (1 << 20);
}

constexpr size_t kKeep = 32u << 20;
constexpr absl::Duration kLook = absl::Milliseconds(20);

// Leaves about 128 MiB free in the middle of the heap, where only trimming finds them.
std::unique_ptr<char[]> Burst() {
  constexpr size_t kBlock = 16 << 10;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < (128 << 20) / static_cast<int>(kBlock); ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlock));
  }
  return std::make_unique<char[]>(kBlock);  // Above them all.
}

TEST(MemoryKeeper, GivesBackWhatABurstLeftOnceTheServerIsIdle) {
#if defined(__SANITIZE_ADDRESS__) || defined(LONGVIEW_THREAD_SANITIZER)
  GTEST_SKIP() << "the sanitizer's allocator keeps freed memory on purpose";
#endif
  const auto top = Burst();
  const double after_burst = Resident();
  std::atomic<bool> idle = false;
  std::atomic<int> looks = 0;
  MemoryKeeper keeper([&] { return ++looks, idle.load(); }, kKeep, absl::Hours(1), kLook);
  while (looks < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(Resident(), after_burst - 32) << "given back while the server was busy";
  idle = true;
  while (looks < 1000 && Resident() > after_burst - 96) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(Resident(), after_burst - 96);
}

TEST(MemoryKeeper, GivesBackNowAndThenBesideCallsThatNeverPause) {
#if defined(__SANITIZE_ADDRESS__) || defined(LONGVIEW_THREAD_SANITIZER)
  GTEST_SKIP() << "the sanitizer's allocator keeps freed memory on purpose";
#endif
  const auto top = Burst();
  const double after_burst = Resident();
  std::atomic<int> looks = 0;
  MemoryKeeper keeper([&] { return ++looks, false; }, kKeep, absl::Milliseconds(50), kLook);
  while (looks < 1000 && Resident() > after_burst - 96) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(Resident(), after_burst - 96);
}

TEST(MemoryKeeper, EndsAtOnce) {
  const MemoryKeeper keeper([] { return true; });
}

}  // namespace
}  // namespace longview::server
