#include "client/cli/inputs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/client/test_folder.h"

namespace longview::client {
namespace {

namespace fs = std::filesystem;

class InputsTest : public TestFolder {
 protected:
  absl::StatusOr<std::string> Read(const std::string& path, const ReadOptions& options = {}) {
    std::istringstream nothing;
    return ReadInput({path, absl::OkStatus()}, options, nothing);
  }
};

TEST_F(InputsTest, DirectoriesAreWalkedInOrderWithoutHiddenNames) {
  const std::string b = Write("b.txt", "b");
  const std::string a = Write("a/deep/x.txt", "x");
  Write(".git/object", "hidden");
  Write("a/.swap", "hidden");
  fs::create_directory_symlink(root_, root_ / "a" / "loop");
  fs::create_symlink(root_ / "nowhere", root_ / "dangling");
  const std::vector<Input> inputs = ListInputs({root_.string(), b, "-"});
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_EQ(inputs[0].path, a);
  EXPECT_EQ(inputs[1].path, b);
  EXPECT_EQ(inputs[2].path, b);
  EXPECT_EQ(inputs[3].path, "-");
}

TEST_F(InputsTest, AMissingPathStaysInTheListWithItsError) {
  const std::string there = Write("there", "text");
  const std::vector<Input> inputs = ListInputs({(root_ / "missing").string(), there});
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(inputs[1].status.ok());
}

TEST_F(InputsTest, StandardInputIsRead) {
  std::istringstream stream("from a pipe\n");
  EXPECT_EQ(*ReadInput({"-", absl::OkStatus()}, {}, stream), "from a pipe\n");
}

TEST_F(InputsTest, InvalidUtf8IsAnErrorUnlessLossy) {
  const std::string path = Write("latin1", "caf\xE9");
  const absl::StatusOr<std::string> strict = Read(path);
  EXPECT_EQ(strict.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(strict.status().message().find("byte 3"), std::string::npos) << strict.status();
  EXPECT_EQ(*Read(path, {.lossy = true}), "caf\xEF\xBF\xBD");
}

TEST_F(InputsTest, PicturesAreKnownByTheirFirstBytes) {
  const std::string webp = "RIFF\x24\x01\x02\x03WEBPVP8 ";
  EXPECT_EQ(PictureFormat("\xff\xd8\xff\xdb"), "JPEG");
  EXPECT_EQ(PictureFormat("\x89PNG\r\n\x1a\n"), "PNG");
  EXPECT_EQ(PictureFormat(webp), "WebP");
  for (const char* other : {"", "\xff\xd8", "\x89PNG", "RIFF", "RIFF1234WAVEfmt ", "plain text"}) {
    EXPECT_EQ(PictureFormat(other), "") << other;
  }
  EXPECT_EQ(PictureFormatOfFile(Write("x", webp)), "WebP");
  EXPECT_EQ(PictureFormatOfFile((root_ / "missing").string()), "");
  const std::string png = Write("png", "\x89PNG\r\n\x1a\n\xff");
  EXPECT_TRUE(Read(png, {.pictures = true}).ok());
  EXPECT_EQ(Read(png, {.lossy = true}).status().message(),
            "a picture (PNG), not a text; classify and detect read pictures");
}

TEST_F(InputsTest, TheSizeLimitIsExact) {
  const std::string path = Write("ten", "0123456789");
  EXPECT_EQ(*Read(path, {.max_bytes = 10}), "0123456789");
  const absl::StatusOr<std::string> over = Read(path, {.max_bytes = 9});
  EXPECT_EQ(over.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(over.status().message().find("9 bytes"), std::string::npos);
}

TEST_F(InputsTest, AVanishedFileIsNotFound) {
  EXPECT_EQ(Read((root_ / "gone").string()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace longview::client
