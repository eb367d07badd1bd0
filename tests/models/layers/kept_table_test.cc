#include "models/layers/kept_table.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/checkpoint/convert.h"
#include "tests/models/checkpoint/safetensors_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

namespace fs = std::filesystem;

constexpr size_t kElements = 16384;  // 64 KiB.

// Three tensors t0, t1, t2, each of one value: 1, 2, 3.
std::string ThreeTables() {
  std::string header = "{", data;
  for (size_t i = 0; i < 3; ++i) {
    const size_t bytes = kElements * sizeof(float);
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[16384],"data_offsets":[)" + std::to_string(i * bytes) +
              "," + std::to_string((i + 1) * bytes) + "]}";
    const std::vector<float> values(kElements, static_cast<float>(i + 1));
    data.append(reinterpret_cast<const char*>(values.data()), bytes);
  }
  return SafetensorsBytes(header + "}", data);
}

class KeptTable : public ::testing::Test {
 protected:
  KeptTable()
      : path_(directory_.Write("model.safetensors", ThreeTables())),
        checkpoint_(Checkpoint::Open(path_)) {}

  const TensorView* Keep(WeightLoader& load, const std::string& name) {
    const TensorView* table = load.Get(name, {kElements});
    KeepTable(table, load);
    return table;
  }
  std::vector<float> Values(const char* name) { return ToFloat32(*checkpoint_->Find(name)); }

  const testing::TempDirectory directory_;
  const std::string path_;
  const absl::StatusOr<Checkpoint> checkpoint_;
};

TEST_F(KeptTable, OutlivesTheFilesBytes) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  WeightLoader load(*checkpoint_, "here", Compute::kFp32);
  const TensorView* table = Keep(load, "t1");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(load.memory_bytes(), 4.0 * kElements);
  fs::resize_file(path_, 100);
  EXPECT_EQ(Values("t1"), std::vector<float>(kElements, 2.0f));
}

TEST_F(KeptTable, IsWhatWasReadWhateverIsWritten) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  ASSERT_TRUE(OwnPages(*checkpoint_->Find("t1")).ok());
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const std::string zeros(fs::file_size(path_), '\0');
    file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  }
  EXPECT_EQ(Values("t1"), std::vector<float>(kElements, 2.0f));
}

// A table that is packed too: the linear gives its pages back.
TEST_F(KeptTable, IsThereAfterItsPagesWereGivenBack) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  WeightLoader load(*checkpoint_, "here", Compute::kFp32);
  const TensorView* table = Keep(load, "t2");
  EXPECT_EQ(load.Copy(table), std::vector<float>(kElements, 3.0f));
  fs::resize_file(path_, 100);
  EXPECT_EQ(Values("t2"), std::vector<float>(kElements, 3.0f));
}

TEST_F(KeptTable, CopyFromAShortenedFileIsAnError) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  fs::resize_file(path_, fs::file_size(path_) - kElements * sizeof(float));
  WeightLoader load(*checkpoint_, "here", Compute::kFp32);
  EXPECT_EQ(load.Vector("t1", kElements), std::vector<float>(kElements, 2.0f));
  EXPECT_TRUE(load.ok());
  EXPECT_EQ(load.Vector("t2", kElements), std::vector<float>(kElements, 0.0f));
  EXPECT_EQ(load.Finish().code(), absl::StatusCode::kFailedPrecondition) << load.Finish();
  WeightLoader tied(*checkpoint_, "here", std::nullopt);
  const std::array<std::string, 2> names = {"t1", "t2"};
  tied.GetTied(names, {kElements});
  EXPECT_EQ(tied.Finish().code(), absl::StatusCode::kFailedPrecondition) << tied.Finish();
}

TEST_F(KeptTable, OfValuesThatAreNoNumbersIsAnError) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-4, std::ios::end);
    file.write("\xff\xff\xff\xff", 4);
  }
  WeightLoader load(*checkpoint_, "here", Compute::kFp32);
  Keep(load, "t1");
  EXPECT_TRUE(load.ok());
  Keep(load, "t2");
  EXPECT_EQ(load.Finish().code(), absl::StatusCode::kInvalidArgument) << load.Finish();
}

TEST_F(KeptTable, OfAShortenedFileIsAnError) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  fs::resize_file(path_, fs::file_size(path_) - kElements * sizeof(float));
  const absl::Status gone = OwnPages(*checkpoint_->Find("t2"));
  EXPECT_EQ(gone.code(), absl::StatusCode::kFailedPrecondition) << gone;
  EXPECT_NE(gone.message().find("\"t2\""), std::string::npos) << gone;
  EXPECT_TRUE(OwnPages(*checkpoint_->Find("t1")).ok());
}

}  // namespace
}  // namespace longview::models
