#include "server/log/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace longview::server {
namespace {

constexpr std::string_view kTime = "2026-01-02T03:04:05.678Z";

TEST(LogTest, JsonLinesParseAndKeepTypes) {
  const std::string line =
      Log::Format(LogFormat::kJson, LogLevel::kInfo, kTime, "request",
                  {{"model", "m \"x\"\n"}, {"seconds", 0.25}, {"tokens", int64_t{4096}}});
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["ts"], kTime);
  EXPECT_EQ(json["level"], "info");
  EXPECT_EQ(json["msg"], "request");
  EXPECT_EQ(json["model"], "m \"x\"\n");
  EXPECT_EQ(json["seconds"], 0.25);
  EXPECT_EQ(json["tokens"], 4096);
  EXPECT_EQ(line.find('\n'), std::string::npos) << "a line must stay a line";
}

TEST(LogTest, InvalidUtf8IsReplacedNotLost) {
  const std::string line = Log::Format(LogFormat::kJson, LogLevel::kWarning, kTime, "skipped",
                                       {{"file", std::string_view("\xff\xfe", 2)}});
  EXPECT_EQ(nlohmann::json::parse(line)["file"], "\uFFFD\uFFFD");
}

TEST(LogTest, TextQuotesValues) {
  EXPECT_EQ(Log::Format(LogFormat::kText, LogLevel::kError, kTime, "load failed",
                        {{"model", "a b"}, {"count", int64_t{2}}}),
            std::string(kTime) + " error load failed model=\"a b\" count=2");
}

TEST(LogTest, FieldsWithoutANameAreLeftOut) {
  const auto line = [](LogFormat format) {
    return Log::Format(format, LogLevel::kInfo, kTime, "request", {{"", "x"}, {"code", "OK"}});
  };
  EXPECT_FALSE(nlohmann::json::parse(line(LogFormat::kJson)).contains(""));
  EXPECT_EQ(nlohmann::json::parse(line(LogFormat::kJson))["code"], "OK");
  EXPECT_EQ(line(LogFormat::kText), std::string(kTime) + " info request code=\"OK\"");
}

}  // namespace
}  // namespace longview::server
