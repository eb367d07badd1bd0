// Runs a fuzz target on its committed seeds, whole and cut short: among them every input that
// once broke it. Started in the folder of the seeds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace longview::fuzz {
namespace {

void RunTarget(const std::string& input) {
  // A buffer of its own, so that AddressSanitizer sees reads behind the end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
}

TEST(Replay, EverySeedWholeAndCutShort) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(".")) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string seed{std::istreambuf_iterator<char>(file), {}};
    ASSERT_TRUE(file) << entry.path();
    RunTarget(seed);
    constexpr size_t kCuts = 8;
    for (size_t cut = 0; cut < kCuts; ++cut) RunTarget(seed.substr(0, seed.size() * cut / kCuts));
    ++seeds;
  }
  EXPECT_GT(seeds, 0);
}

}  // namespace
}  // namespace longview::fuzz
