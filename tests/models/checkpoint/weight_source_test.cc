#include "models/checkpoint/weight_source.h"

#include <array>
#include <string>

#include "gtest/gtest.h"
#include "tests/models/checkpoint/safetensors_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using Code = absl::StatusCode;

class WeightSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const float data[7] = {1, 2, 3, 1, 2, 3, 9};
    std::string bytes(reinterpret_cast<const char*>(data), sizeof data);
    bytes.append(8, '\0');
    const std::string path = directory_.Write(
        "model.safetensors",
        SafetensorsBytes(
            R"({"p.table":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
            R"("decoder":{"dtype":"F32","shape":[3],"data_offsets":[12,24]},)"
            R"("p.LayerNorm.gamma":{"dtype":"F32","shape":[1],"data_offsets":[24,28]},)"
            R"("p.position_ids":{"dtype":"I64","shape":[1],"data_offsets":[28,36]}})",
            bytes));
    auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_.emplace(*std::move(checkpoint));
    source_.emplace(*checkpoint_, "dir");
  }

  template <typename Result>
  static void ExpectError(const Result& result, Code code, const std::string& part) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code) << result.status();
    EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status();
  }

  testing::TempDirectory directory_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<WeightSource> source_;
};

TEST_F(WeightSourceTest, EverythingUsedOrIgnoredFinishes) {
  source_->Ignore("*.position_ids");
  source_->AcceptSpelling("LayerNorm.weight", "LayerNorm.gamma");
  ASSERT_TRUE(source_->Get("p.table", {3}).ok());
  ASSERT_TRUE(source_->GetOptional("decoder", {3}).ok());
  const auto norm = source_->Get("p.LayerNorm.weight", {1});
  ASSERT_TRUE(norm.ok()) << norm.status();
  EXPECT_EQ((*norm)->name, "p.LayerNorm.gamma");
  EXPECT_TRUE(source_->Finish().ok()) << source_->Finish();
}

TEST_F(WeightSourceTest, UnusedTensorsAreListed) {
  ASSERT_TRUE(source_->Get("p.table", {3}).ok());
  const absl::Status status = source_->Finish();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "dir: 3 tensor(s) that this architecture does not have: decoder [3], "
            "p.LayerNorm.gamma [1], p.position_ids [1]");
}

TEST_F(WeightSourceTest, MissingAndMisshapenAreNamed) {
  ExpectError(source_->Get("p.tables", {3}), Code::kNotFound, "\"p.tables\" [3] is missing");
  ExpectError(source_->Get("p.table", {3, 1}), Code::kInvalidArgument,
              "\"p.table\": expected shape [3, 1], found [3]");
  ExpectError(source_->GetOptional("p.table", {4}), Code::kInvalidArgument, "expected shape [4]");
  ExpectError(source_->Get("p.position_ids", {1}), Code::kInvalidArgument, "found I64");
  const auto absent = source_->GetOptional("absent", {3});
  ASSERT_TRUE(absent.ok());
  EXPECT_EQ(*absent, nullptr);
}

TEST_F(WeightSourceTest, TiedTensorsMustAgree) {
  const std::array<std::string, 3> tied = {"decoder", "p.table", "absent"};
  const auto both = source_->GetTied(tied, {3});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ((*both)->name, "decoder");

  const std::array<std::string, 1> absent = {"absent"};
  ExpectError(source_->GetTied(absent, {3}), Code::kNotFound, "absent");

  const float data[2] = {1, 2};
  const std::string path =
      directory_.Write("differ.safetensors",
                       SafetensorsBytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                        {reinterpret_cast<const char*>(data), sizeof data}));
  const auto differ = Checkpoint::Open(path);
  ASSERT_TRUE(differ.ok()) << differ.status();
  WeightSource source(*differ, "dir");
  const std::array<std::string, 2> names = {"a", "b"};
  ExpectError(source.GetTied(names, {1}), Code::kInvalidArgument, "values differ");
}

TEST_F(WeightSourceTest, PrefixesAreTriedInOrder) {
  const std::array<std::string_view, 2> prefixes = {"q.", "p."};
  EXPECT_EQ(*source_->FindPrefix(prefixes, "table"), "p.");
  ExpectError(source_->FindPrefix(prefixes, "no"), Code::kNotFound, "q.no, p.no");
}

TEST_F(WeightSourceTest, PatternsMatchWholeNames) {
  for (const char* good : {"*", "p.*", "*ids", "p.pos*_*", "p.position_ids"}) {
    WeightSource source(*checkpoint_, "dir");
    source.Ignore("decoder");
    source.Ignore("p.table");
    source.Ignore("p.L*");
    source.Ignore(good);
    EXPECT_TRUE(source.Finish().ok()) << good;
  }
  for (const char* bad : {"", "position_ids", "p.position", "*id", "*x*"}) {
    WeightSource source(*checkpoint_, "dir");
    source.Ignore(bad);
    EXPECT_NE(source.Finish().message().find("p.position_ids"), std::string::npos) << bad;
  }
}

}  // namespace
}  // namespace longview::models
