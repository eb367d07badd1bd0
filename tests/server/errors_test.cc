#include "server/errors.h"

#include <string>

#include "gtest/gtest.h"

namespace longview::server {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

TEST(MakeErrorTest, DetailSurvivesCopiesOfTheStatus) {
  const absl::Status made = MakeError(absl::StatusCode::kResourceExhausted, "queue is full",
                                      {"QUEUE_FULL", absl::Milliseconds(1500), "model"});
  const absl::Status copy = made;
  EXPECT_EQ(copy.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(copy.message(), "queue is full");
  const ErrorDetail detail = GetErrorDetail(copy);
  EXPECT_EQ(detail.reason, "QUEUE_FULL");
  ASSERT_TRUE(detail.retry_after.has_value());
  EXPECT_EQ(*detail.retry_after, absl::Milliseconds(1500));
  EXPECT_EQ(detail.param, "model");
}

TEST(MakeErrorTest, EmptyFieldsStayEmpty) {
  const ErrorDetail detail =
      GetErrorDetail(MakeError(absl::StatusCode::kInvalidArgument, "m", {"TOO_LONG", {}, ""}));
  EXPECT_EQ(detail.reason, "TOO_LONG");
  EXPECT_FALSE(detail.retry_after.has_value());
  EXPECT_EQ(detail.param, "");
}

TEST(MakeErrorTest, AnyParamSurvives) {
  const std::string param("a\nb\0c", 5);
  const ErrorDetail detail =
      GetErrorDetail(MakeError(absl::StatusCode::kInvalidArgument, "m", {"R", {}, param}));
  EXPECT_EQ(detail.param, param);
}

TEST(GetErrorDetailTest, OtherStatusesAreNamedByTheirCode) {
  EXPECT_EQ(GetErrorDetail(absl::NotFoundError("m")).reason, "NOT_FOUND");
  EXPECT_EQ(GetErrorDetail(absl::DeadlineExceededError("m")).reason, "DEADLINE_EXCEEDED");
  EXPECT_FALSE(GetErrorDetail(absl::UnavailableError("m")).retry_after.has_value());
}

TEST(QuotedTest, ShortTextIsUnchanged) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("model-7"), "\"model-7\"");
  EXPECT_EQ(Quoted("Ünïcode €"), "\"Ünïcode €\"");
  EXPECT_EQ(Quoted(std::string(64, 'x')), "\"" + std::string(64, 'x') + "\"");
}

TEST(QuotedTest, CutsAtCharacterBorder) {
  EXPECT_EQ(Quoted(std::string(65, 'x')), "\"" + std::string(64, 'x') + "...\"");
  // The euro sign (3 bytes) would end at byte 65.
  EXPECT_EQ(Quoted(std::string(62, 'x') + "€"), "\"" + std::string(62, 'x') + "...\"");
  EXPECT_EQ(Quoted(std::string(61, 'x') + "€"), "\"" + std::string(61, 'x') + "€\"");
}

TEST(QuotedTest, ReplacesWhatMustNotReachATerminal) {
  const std::string bad = kReplacement;
  EXPECT_EQ(Quoted("a\nb\x1b[0m"), "\"a" + bad + "b" + bad + "[0m\"");
  EXPECT_EQ(Quoted(std::string_view("\0", 1)), "\"" + bad + "\"");
  EXPECT_EQ(Quoted("\x7F"), "\"" + bad + "\"");
  EXPECT_EQ(Quoted("\xC2\x85"), "\"" + bad + "\"");
}

TEST(ExcerptTest, IsQuotedTextWithoutQuotes) {
  EXPECT_EQ(Excerpt("top_k"), "top_k");
  EXPECT_EQ(Excerpt(std::string(65, 'x')), std::string(64, 'x') + "...");
  EXPECT_EQ(Excerpt("a\nb"), std::string("a") + kReplacement + "b");
}

TEST(QuotedTest, ReplacesInvalidUtf8) {
  const std::string bad = kReplacement;
  EXPECT_EQ(Quoted("\xFF"), "\"" + bad + "\"");
  EXPECT_EQ(Quoted("\xE2\x82"), "\"" + bad + bad + "\"");            // Cut short.
  EXPECT_EQ(Quoted("\xC0\xAF"), "\"" + bad + bad + "\"");            // Overlong.
  EXPECT_EQ(Quoted("\xED\xA0\x80"), "\"" + bad + bad + bad + "\"");  // Surrogate.
  EXPECT_EQ(Quoted("\xF4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"");
  EXPECT_EQ(Quoted("\xF0\x9F\x98\x80"), "\"\xF0\x9F\x98\x80\"");
}

}  // namespace
}  // namespace longview::server
