// The image sizes and options that a CvT-LS takes.
#include <gtest/gtest.h>

#include "tests/models/vision/image_case.h"

namespace longview::models {
namespace {

TEST(CvtLsSizesTest, AnySquareOfWholeWindowsAndOthersWithTheKey) {
  const ImageCase golden("cvt_ls", "cls_joint");
  const std::unique_ptr<Model> model = golden.Load("fp32");
  ASSERT_NE(model, nullptr);
  const Request request = golden.Requests()[0];
  EXPECT_TRUE(model->Prepare(Resized(request, {64, 64})).ok());
  ExpectSizeRefused(*model, request, {72, 72}, "any_size");
  EXPECT_TRUE(golden.LoadWith({{"any_size", true}})->Prepare(Resized(request, {72, 72})).ok());
}

TEST(CvtLsConfigTest, ValuesWithoutMeaningAreRefusedByName) {
  const ImageCase golden("cvt_ls", "cls_joint");
  const auto refusal = [&](const nlohmann::json& change) {
    return std::string(golden.LoadEdited(change).status().message());
  };
  EXPECT_NE(refusal({{"rel_bias", true}}).find("rel_bias"), std::string::npos);
  EXPECT_NE(refusal({{"qkv_stride_kv", 2}}).find("qkv_stride_kv"), std::string::npos);
  EXPECT_NE(refusal({{"cls_stage", nullptr}}).find("pool"), std::string::npos);
  EXPECT_NE(refusal({{"cls_stage", 2}}).find("cls_stage"), std::string::npos);
  EXPECT_NE(refusal({{"dims", {12, 24}}}).find("dims"), std::string::npos);
  EXPECT_NE(refusal({{"windows", {8, 3, 2}}}).find("windows of 3"), std::string::npos);
  // Without normalisation of the kernels the stored one would be dropped.
  EXPECT_NE(refusal({{"qkv_norm", "none"}}).find("bn"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
