// Files in torch.save's formats, honest and hostile, as make_torch_files.py writes them.
#include "models/checkpoint/torch_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/convert.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

namespace fs = std::filesystem;

const fs::path kFiles = fs::path(LONGVIEW_GOLDEN_DIR) / "../fuzz/corpus/torch_file";

absl::StatusOr<Checkpoint> OpenFile(const std::string& name, const testing::TempDirectory& at) {
  fs::copy_file(kFiles / name, at.Path("pytorch_model.bin"), fs::copy_options::overwrite_existing);
  return Checkpoint::Open(at.path());
}

std::vector<float> ValuesOf(const Checkpoint& checkpoint, const std::string& name) {
  const TensorView* tensor = checkpoint.Find(name);
  if (tensor == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(tensor->elements()));
  EXPECT_TRUE(ReadFloat32(*tensor, 0, values).ok());
  return values;
}

TEST(TorchFileTest, TensorsLieAsTheirStridesSay) {
  const testing::TempDirectory directory;
  const std::pair<const char*, std::vector<float>> wanted[] = {
      {"plain", {0, 1, 2, 3, 4, 5}},      {"parameter", {3, 4, 5}},
      {"transposed", {0, 3, 1, 4, 2, 5}}, {"doubles", {0.1f, -2.5f}},
      {"legacy", {0, 1, 2, 3, 4, 5}},     {"legacy_view", {3, 4}}};
  for (const auto& [name, values] : wanted) {
    const auto checkpoint = OpenFile(name, directory);
    ASSERT_TRUE(checkpoint.ok()) << name << checkpoint.status();
    EXPECT_EQ(ValuesOf(*checkpoint, "w"), values) << name;
  }
  const auto checkpoint = OpenFile("scalar_and_empty", directory);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(ValuesOf(*checkpoint, "s"), std::vector<float>{5});
  EXPECT_EQ(checkpoint->Find("e")->shape, (std::vector<int64_t>{0, 7}));
}

TEST(TorchFileTest, HostileFilesAreRefusedByWhatTheyHold) {
  const std::pair<const char*, const char*> wanted[] = {
      {"bad_legacy_beyond", "does not lie in the file"},
      {"bad_legacy_big_endian", "big-endian"},
      {"bad_call", "asks for os.system"},
      {"bad_stack_global", "asks for builtins.eval"},
      {"bad_opcode", "opcode 73"},
      {"bad_entry", "entry \"epoch\" is no tensor"},
      {"bad_root", "something else than a state dict"},
      {"bad_memo", "nothing remembered as 7"},
      {"bad_memo_bomb", "entry \"w\" is no tensor"},
      {"bad_deep_nesting", "something else than a state dict"},
      {"bad_deep_stack", "something else than a state dict"},
      {"bad_pop", "empty stack"},
      {"bad_text_beyond", "the end of the data"},
      {"bad_beyond", "reaches beyond its storage of 6 elements"},
      {"bad_stride", "negative side or stride"},
      {"bad_side", "negative side or stride"},
      {"bad_offset", "without a storage"},
      {"bad_overflow", "reaches beyond its storage"},
      {"bad_product", "reaches beyond its storage"},
      {"bad_repeated", "tensor \"w\": repeats elements of its storage"},
      {"bad_storage_size", "storage \"0\" has 24 bytes, its 7 elements"},
      {"bad_storage_missing", "storage \"0\" is not in the file"},
      {"bad_storage_twice", "storage \"0\" of two kinds"},
      {"bad_name_twice", "tensor \"w\": is there twice"},
      {"bad_byte_order", "big-endian"},
      {"bad_compressed", "a compressed entry"},
      {"bad_overlap", "entries overlap"},
      {"bad_truncated", "no central directory"},
      {"bad_directory_beyond", "no central directory"},
      {"bad_entry_count", "a broken directory"},
      {"bad_no_torch_file", "not a file that torch.save wrote"}};
  const testing::TempDirectory directory;
  for (const auto& [name, part] : wanted) {
    const auto checkpoint = OpenFile(name, directory);
    ASSERT_FALSE(checkpoint.ok()) << name;
    const std::string message(checkpoint.status().message());
    EXPECT_NE(message.find(part), std::string::npos) << name << ": " << message;
    EXPECT_EQ(message.find(directory.Path("pytorch_model.bin") + ": "), 0) << message;
    EXPECT_NE(message.find("Convert it once: python3 models/convert/"), std::string::npos);
  }
}

TEST(TorchFileTest, PickledFormsHoldTheTensorsOfTheirTwin) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  const fs::path forms =
      fs::path(root != nullptr ? root : LONGVIEW_GOLDEN_DIR) / "longformer/checkpoint_forms";
  const auto twin = Checkpoint::Open((forms / "model").string());
  ASSERT_TRUE(twin.ok()) << twin.status();
  for (const char* form : {"model_bin_zip", "model_bin_legacy"}) {
    const auto pickled = Checkpoint::Open((forms / form).string());
    ASSERT_TRUE(pickled.ok()) << pickled.status();
    for (const auto& [name, tensor] : twin->tensors()) {
      const TensorView* other = pickled->Find(name);
      ASSERT_NE(other, nullptr) << form << " " << name;
      EXPECT_EQ(other->shape, tensor.shape);
      ASSERT_EQ(other->bytes, tensor.bytes);
      EXPECT_EQ(std::memcmp(other->data, tensor.data, tensor.bytes), 0) << form << " " << name;
    }
  }
}

TEST(TorchFileTest, SafetensorsWinAndShardsAreRead) {
  const testing::TempDirectory directory;
  fs::copy_file(kFiles / "plain", directory.Path("part-1.bin"));
  directory.Write("pytorch_model.bin.index.json", R"({"weight_map": {"w": "part-1.bin"}})");
  const auto sharded = Checkpoint::Open(directory.path());
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_EQ(ValuesOf(*sharded, "w").size(), 6);
  fs::copy_file(kFiles / "doubles", directory.Path("pytorch_model.bin"));
  EXPECT_EQ(ValuesOf(*Checkpoint::Open(directory.path()), "w").size(), 2);
  directory.Write("model.safetensors", "broken");
  EXPECT_FALSE(Checkpoint::Open(directory.path()).ok());
}

}  // namespace
}  // namespace longview::models
