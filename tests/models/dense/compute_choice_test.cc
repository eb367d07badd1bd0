// The choice of a model's compute type on a CPU, and its reason.
#include "models/dense/compute_choice.h"

#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "kernels/base/cpu_features.h"
#include "models/dense/int8_kernels.h"

namespace longview::models {
namespace {

ComputeChoice Choose(const std::string& asked, const std::string& serving,
                     const std::string& stored) {
  const auto choice = ChooseCompute(asked, serving, stored);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return choice.value_or(ComputeChoice{});
}

TEST(ComputeChoiceTest, HalvesOfADirectoryAreComputedInFp32WithANote) {
  for (const auto& [serving, stored, claim] :
       {std::tuple{"", "float16", "config.json says float16"},
        std::tuple{"fp16", "bfloat16", "longview.json says fp16"}}) {
    const ComputeChoice choice = Choose("auto", serving, stored);
    EXPECT_EQ(choice.compute, Compute::kFp32);
    EXPECT_TRUE(choice.why.starts_with(claim)) << choice.why;
    ASSERT_EQ(choice.notes.size(), 1u);
    EXPECT_EQ(choice.notes[0], "computed in fp32: " + choice.why);
  }
}

TEST(ComputeChoiceTest, Fp32NeedsNoNote) {
  EXPECT_EQ(Choose("auto", "", "float32").why, "config.json says float32");
  EXPECT_EQ(Choose("auto", "", "").why, "config.json names no type");
  EXPECT_EQ(Choose("auto", "fp32", "float16").why, "longview.json says fp32");
  EXPECT_EQ(Choose("fp32", "bf16", "bfloat16").why, "--dtype says so");
  for (const char* stored : {"float32", ""}) {
    EXPECT_EQ(Choose("auto", "", stored).compute, Compute::kFp32);
    EXPECT_TRUE(Choose("auto", "", stored).notes.empty());
  }
}

TEST(ComputeChoiceTest, Bf16IsTakenWhereItIsNativeAndSaid) {
  const Compute expected = kernels::Bf16IsNative() ? Compute::kBf16 : Compute::kFp32;
  for (const ComputeChoice& choice :
       {Choose("auto", "", "bfloat16"), Choose("auto", "bf16", "float16")}) {
    EXPECT_EQ(choice.compute, expected);
    EXPECT_EQ(choice.notes.empty(), expected == Compute::kBf16);
    EXPECT_NE(choice.why.find(" says b"), std::string::npos) << choice.why;
  }
  const ComputeChoice asked = Choose("bf16", "", "float16");
  EXPECT_EQ(asked.notes.empty(), asked.compute == Compute::kBf16);
}

TEST(ComputeChoiceTest, OtherTypesAreRefused) {
  EXPECT_FALSE(ChooseCompute("fp16", "", "float16").ok());
  EXPECT_FALSE(ChooseCompute("int4", "", "").ok());
}

TEST(ComputeChoiceTest, Int8IsBesideTheTypeThatTheProcessorMultiplies) {
  if (ChooseInt8().support == Int8Support::kNone) {
    EXPECT_FALSE(ChooseCompute("int8", "", "").ok());
    EXPECT_FALSE(Choose("auto", "int8", "").int8) << "a directory's wish is a note";
    return;
  }
  const Compute beside = kernels::Bf16IsNative() ? Compute::kBf16 : Compute::kFp32;
  for (const ComputeChoice& choice : {Choose("int8", "", "bfloat16"), Choose("auto", "int8", "")}) {
    EXPECT_TRUE(choice.int8);
    EXPECT_EQ(choice.compute, beside);
    EXPECT_STREQ(ChosenTypeName(choice), "int8");
    EXPECT_EQ(choice.notes.empty(), ChooseInt8().support == Int8Support::kNative);
  }
  EXPECT_FALSE(Choose("fp32", "int8", "").int8) << "the flag comes first";
}

TEST(ComputeChoiceTest, DevicesHaveNoInt8) {
  const auto asked = ChooseDeviceCompute("int8", "", "");
  EXPECT_NE(asked.status().message().find("on a CPU"), std::string::npos) << asked.status();
  const auto said = ChooseDeviceCompute("auto", "int8", "bfloat16");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->compute, Compute::kBf16);
  EXPECT_EQ(said->notes.size(), 1u);
}

}  // namespace
}  // namespace longview::models
