#include "models/checkpoint/checkpoint.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/checkpoint/convert.h"
#include "tests/models/checkpoint/safetensors_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

fs::path Golden(const std::string& form) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return fs::path(root ? root : LONGVIEW_GOLDEN_DIR) / "longformer/checkpoint_forms" / form;
}

// One fp32 tensor of one element.
std::string Tiny(const std::string& name, float value) {
  const std::string header =
      "{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  return SafetensorsBytes(header, {reinterpret_cast<const char*>(&value), 4});
}

void ExpectError(const std::string& path, Code code, const std::string& part) {
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.status().code(), code) << checkpoint.status();
  EXPECT_NE(checkpoint.status().message().find(part), std::string::npos) << checkpoint.status();
}

TEST(Checkpoint, ShardsHoldTheSameTensorsAsTheSingleFile) {
  const auto single = Checkpoint::Open(Golden("model"));
  const auto sharded = Checkpoint::Open(Golden("model_sharded"));
  ASSERT_TRUE(single.ok()) << single.status();
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  ASSERT_FALSE(single->tensors().empty());
  ASSERT_EQ(single->tensors().size(), sharded->tensors().size());
  for (const auto& [name, tensor] : single->tensors()) {
    const TensorView* other = sharded->Find(name);
    ASSERT_NE(other, nullptr) << name;
    EXPECT_EQ(other->shape, tensor.shape);
    ASSERT_EQ(other->bytes, tensor.bytes);
    EXPECT_EQ(std::memcmp(other->data, tensor.data, tensor.bytes), 0) << name;
  }
  EXPECT_EQ(single->total_bytes(), sharded->total_bytes());
}

TEST(Checkpoint, HalfPrecisionFormsAreTheRoundedWeights) {
  const auto full = Checkpoint::Open(Golden("model"));
  ASSERT_TRUE(full.ok()) << full.status();
  const struct {
    const char* form;
    DType dtype;
    float tolerance;  // Half a unit in the last place, relative.
  } forms[] = {{"model_f16", DType::kF16, 0x1p-11f}, {"model_bf16", DType::kBF16, 0x1p-8f}};
  for (const auto& form : forms) {
    const auto half = Checkpoint::Open(Golden(form.form));
    ASSERT_TRUE(half.ok()) << half.status();
    for (const auto& [name, tensor] : full->tensors()) {
      const TensorView* rounded = half->Find(name);
      ASSERT_NE(rounded, nullptr) << name;
      ASSERT_EQ(rounded->dtype, form.dtype);
      const std::vector<float> expected = ToFloat32(tensor), found = ToFloat32(*rounded);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], std::abs(expected[i]) * form.tolerance + 0x1p-25f)
            << name << " " << i;
      }
    }
  }
}

TEST(Checkpoint, ReleasedPagesReadBack) {
  const auto checkpoint = Checkpoint::Open(Golden("model"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (const auto& [name, tensor] : checkpoint->tensors()) {
    const std::vector<float> before = ToFloat32(tensor);
    checkpoint->Release(tensor);
    EXPECT_EQ(before, ToFloat32(tensor)) << name;
  }
  checkpoint->ReleaseAll();
}

TEST(Checkpoint, MisalignedTensorsAreReadable) {
  const testing::TempDirectory directory;
  const float values[2] = {1.5f, -2.25f};
  std::string data = "x";
  data.append(reinterpret_cast<const char*>(values), sizeof values);
  const std::string path = directory.Write(
      "odd.safetensors",
      SafetensorsBytes(R"({"byte":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("floats":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})",
                       data));
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(ToFloat32(*checkpoint->Find("floats")), (std::vector<float>{1.5f, -2.25f}));
}

TEST(Checkpoint, WidensEveryFloat16) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const TensorView tensor{.name = "all",
                          .dtype = DType::kF16,
                          .shape = {65536},
                          .data = reinterpret_cast<const std::byte*>(bits.data()),
                          .bytes = bits.size() * 2};
  const std::vector<float> values = ToFloat32(tensor);
  for (uint32_t i = 0; i < 65536; ++i) {
    const int exponent = static_cast<int>(i >> 10 & 31), fraction = static_cast<int>(i & 1023);
    const float sign = i & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31 && fraction != 0) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
    } else if (exponent == 31) {
      ASSERT_EQ(values[i], sign * std::numeric_limits<float>::infinity());
    } else if (exponent == 0) {
      ASSERT_EQ(values[i], sign * std::ldexp(static_cast<float>(fraction), -24));
    } else {
      ASSERT_EQ(values[i], sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25));
    }
  }
}

TEST(Checkpoint, TheSingleFileWinsOverAnIndex) {
  const testing::TempDirectory directory;
  directory.Write("model.safetensors", Tiny("single", 1));
  directory.Write("model.safetensors.index.json", "broken");
  const auto checkpoint = Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_NE(checkpoint->Find("single"), nullptr);
}

TEST(CheckpointErrors, DirectoriesWithoutWeights) {
  const testing::TempDirectory directory;
  ExpectError(directory.path(), Code::kNotFound, "no weights");
  ExpectError(directory.Path("absent"), Code::kNotFound, "No such file");
  directory.Write("training_args.bin", "x");
  ExpectError(directory.path(), Code::kNotFound, "no weights");
  directory.Write("pytorch_model.bin", "x");
  ExpectError(directory.path(), Code::kFailedPrecondition,
              "python3 models/convert/pickle_to_safetensors.py " + directory.path());
}

TEST(CheckpointErrors, WeightsThatAreNotNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), inf, -inf}) {
    std::vector<float> values(100'000, 1.0f);
    values[99'998] = bad;
    const TensorView tensor{.name = "encoder.query",
                            .shape = {1000, 100},
                            .data = reinterpret_cast<const std::byte*>(values.data()),
                            .bytes = values.size() * sizeof(float)};
    std::vector<float> read(values.size());
    for (const absl::Status& status : {ReadFloat32(tensor, 0, read), CheckFinite(tensor)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("\"encoder.query\" [1000, 100]: element 99998 is "),
                        HasSubstr("must be finite")));
    }
    EXPECT_TRUE(ReadFloat32(tensor, 0, std::span(read).first(99'998)).ok());
  }
}

TEST(CheckpointErrors, FilesThatAreNotWeights) {
  const testing::TempDirectory directory;
  ExpectError(directory.Write("model.safetensors", ""), Code::kInvalidArgument, "is empty");
  ExpectError(directory.Write("model.safetensors",
                              "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              Code::kInvalidArgument, "git lfs pull");
  fs::remove(directory.Path("model.safetensors"));
  fs::create_symlink("nowhere", directory.Path("model.safetensors"));
  ExpectError(directory.path(), Code::kNotFound, "model.safetensors");
  fs::remove(directory.Path("model.safetensors"));
  fs::create_directory(directory.Path("model.safetensors"));
  ExpectError(directory.path(), Code::kInvalidArgument, "not a regular file");
}

TEST(CheckpointErrors, BrokenIndexes) {
  const testing::TempDirectory directory;
  directory.Write("s1.safetensors", Tiny("a", 1));
  directory.Write("s2.safetensors", Tiny("b", 2));
  directory.Write("s3.safetensors", Tiny("a", 3));
  const auto index = [&](const std::string& json) {
    return directory.Write("model.safetensors.index.json", json);
  };
  index(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}})");
  EXPECT_TRUE(Checkpoint::Open(directory.path()).ok());

  const struct {
    const char* json;
    Code code;
    const char* part;
  } cases[] = {
      {"", Code::kInvalidArgument, "not valid JSON"},
      {"[]", Code::kInvalidArgument, "expected a JSON object"},
      {"{}", Code::kInvalidArgument, "weight_map"},
      {R"({"weight_map":{}})", Code::kInvalidArgument, "empty"},
      {R"({"weight_map":[1]})", Code::kInvalidArgument, "expected an object"},
      {R"({"weight_map":{"a":3}})", Code::kInvalidArgument, "found 3"},
      {R"({"weight_map":{"a":"s1.safetensors","a":"s1.safetensors"}})", Code::kInvalidArgument,
       "twice"},
      {R"({"weight_map":{"a":"../s1.safetensors"}})", Code::kInvalidArgument, "same directory"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", Code::kInvalidArgument, "same directory"},
      {R"({"weight_map":{"a":"x\\s1.safetensors"}})", Code::kInvalidArgument, "same directory"},
      {R"({"weight_map":{"a":".."}})", Code::kInvalidArgument, "same directory"},
      {R"({"weight_map":{"a":""}})", Code::kInvalidArgument, "same directory"},
      {R"({"weight_map":{"a":"s1.safetensors\u0000"}})", Code::kInvalidArgument, "same directory"},
      {R"({"weight_map":{"a":"s9.safetensors"}})", Code::kNotFound, "listed in"},
      {R"({"weight_map":{"a":"s1.safetensors","c":"s1.safetensors"}})", Code::kInvalidArgument,
       "\"c\" is missing"},
      {R"({"weight_map":{"a":"s2.safetensors"}})", Code::kInvalidArgument, "\"a\" is missing"},
      {R"({"weight_map":{"b":"s2.safetensors","x":"s1.safetensors","a":"s1.safetensors"}})",
       Code::kInvalidArgument, "\"x\" is missing"},
      {R"({"weight_map":{"a":"s1.safetensors","b":"s3.safetensors"}})", Code::kInvalidArgument,
       "another shard"},
  };
  for (const auto& broken : cases) {
    SCOPED_TRACE(broken.json);
    ExpectError(index(broken.json), broken.code, broken.part);
  }
}

TEST(CheckpointErrors, AShardWithATensorTheIndexDoesNotList) {
  const testing::TempDirectory directory;
  directory.Write("s.safetensors",
                  SafetensorsBytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                   R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                   "xx"));
  ExpectError(
      directory.Write("model.safetensors.index.json", R"({"weight_map":{"a":"s.safetensors"}})"),
      Code::kInvalidArgument, "\"b\" is not in the weight_map");
}

}  // namespace
}  // namespace longview::models
