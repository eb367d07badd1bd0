// The meaning of --device on machines with no, one and several CUDA devices.
#include "models/registry/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace longview::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kNone;
const std::vector<std::string> kTwo = {"Hopper", "Ampere"};

TEST(DevicesTest, AutoTakesWhatThereIs) {
  const auto none = ChooseDevices("auto", kNone, "no driver");
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(none->names, ElementsAre("cpu"));
  EXPECT_EQ(none->report, "cpu (no driver)");
  const auto two = ChooseDevices("auto", kTwo, "");
  ASSERT_TRUE(two.ok());
  EXPECT_THAT(two->names, ElementsAre("cuda:0", "cuda:1", "cpu"));
  EXPECT_EQ(two->report, "cuda:0 Hopper, cuda:1 Ampere, cpu");
}

TEST(DevicesTest, CpuIsQuietAboutDevices) {
  const auto devices = ChooseDevices("cpu", kTwo, "");
  ASSERT_TRUE(devices.ok());
  EXPECT_THAT(devices->names, ElementsAre("cpu"));
  EXPECT_EQ(devices->report, "cpu");
}

TEST(DevicesTest, ListsKeepTheirOrder) {
  const auto devices = ChooseDevices("cuda:1,cuda:0", kTwo, "");
  ASSERT_TRUE(devices.ok());
  EXPECT_THAT(devices->names, ElementsAre("cuda:1", "cuda:0", "cpu"));
}

TEST(DevicesTest, DevicesThatAreNotThereAreNamed) {
  const auto none = ChooseDevices("cuda", kNone, "no driver");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("'cuda': no driver"));
  const auto third = ChooseDevices("cuda:0,cuda:2", kTwo, "");
  EXPECT_EQ(third.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(third.status().message()),
              HasSubstr("no cuda:2; there are cuda:0 Hopper, cuda:1 Ampere"));
}

TEST(DevicesTest, OtherWordsAreRefused) {
  for (const char* wanted : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:0,", "cuda:0,cpu",
                             "cuda:0,cuda:0", "cuda:99999999999"}) {
    EXPECT_EQ(ChooseDevices(wanted, kTwo, "").status().code(), absl::StatusCode::kInvalidArgument)
        << wanted;
  }
}

TEST(DevicesTest, ThisMachineAnswers) {
  const auto devices = FindDevices("auto");
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->names.back(), "cpu");
  EXPECT_EQ(CudaIndex(devices->names.back()), -1);
  EXPECT_EQ(CudaIndex("cuda:12"), 12);
}

}  // namespace
}  // namespace longview::models
