#include "models/text/utf8.h"

#include "gtest/gtest.h"

namespace longview::models {
namespace {

TEST(Utf8, CountsCodePoints) {
  const std::string text = "a\u00e9\u65e5\U0001f600z";
  EXPECT_EQ(CodePoints(text), 5);
}

TEST(Utf8, ReplacesInvalidPartsAsPythonDoes) {
  const std::string r = "\xef\xbf\xbd";
  const struct {
    std::string bytes, text;
  } cases[] = {
      {"plain \u00e9\u65e5\U0001f600\U0010ffff", "plain \u00e9\u65e5\U0001f600\U0010ffff"},
      {"\x80", r},
      {"\xc3", r},
      {"\xc3"
       "a",
       r + "a"},
      {"\xc0\xaf", r + r},
      {"\xe0\x80\x80", r + r + r},
      {"\xe6\x97", r},
      {"\xe6\x97"
       "a",
       r + "a"},
      {"\xed\xa0\x80", r + r + r},
      {"\xf0\x9f\x98", r},
      {"\xf0\x9f\x98\xe6\x97\xa5", r + "\u65e5"},
      {"\xf4\x90\x80\x80", r + r + r + r},
      {"\xf5\xff", r + r},
      {std::string("\0a", 2), std::string("\0a", 2)},
  };
  for (const auto& c : cases) EXPECT_EQ(ReplaceInvalidUtf8(c.bytes), c.text);
}

}  // namespace
}  // namespace longview::models
