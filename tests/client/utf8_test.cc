#include "client/cli/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace longview::client {
namespace {

using namespace std::string_literals;

TEST(FirstInvalidUtf8, AcceptsEveryLengthAndTheBorders) {
  EXPECT_EQ(FirstInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("a\0z"s), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("\xC2\x80\xDF\xBF"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), std::nullopt);
}

TEST(FirstInvalidUtf8, NamesTheOffsetOfWhatIsWrong) {
  EXPECT_EQ(FirstInvalidUtf8("ab\xFFz"), 2u);
  EXPECT_EQ(FirstInvalidUtf8("\xC0\xAF"), 0u) << "overlong";
  EXPECT_EQ(FirstInvalidUtf8("x\xE0\x9F\xBF"), 1u) << "overlong, three bytes";
  EXPECT_EQ(FirstInvalidUtf8("\xED\xA0\x80"), 0u) << "surrogate";
  EXPECT_EQ(FirstInvalidUtf8("\xF4\x90\x80\x80"), 0u) << "above U+10FFFF";
  EXPECT_EQ(FirstInvalidUtf8("ok \xE2\x82"), 3u) << "cut short";
  EXPECT_EQ(FirstInvalidUtf8("\x80"), 0u) << "continuation without a lead";
}

// The result of Python's bytes.decode("utf-8", "replace").
TEST(ReplaceInvalidUtf8, ReplacesMaximalParts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(ReplaceInvalidUtf8("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xE2\x82z"), "a" + r + "z");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE2\x82"), r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\x98\xF0\x9F\x98\x80"), r + "\xF0\x9F\x98\x80");
  EXPECT_EQ(FirstInvalidUtf8(ReplaceInvalidUtf8("\xFF\xC0\xF8\x88z\xF4\xA0")), std::nullopt);
}

}  // namespace
}  // namespace longview::client
