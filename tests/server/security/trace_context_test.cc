#include "server/call_ids.h"

#include <gtest/gtest.h>

#include <utility>

namespace longview::server {
namespace {

constexpr std::string_view kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr std::string_view kParent = "00f067aa0ba902b7";

std::string Header(std::string_view version, std::string_view trace, std::string_view parent,
                   std::string_view rest = "01") {
  return std::string(version)
      .append("-")
      .append(trace)
      .append("-")
      .append(parent)
      .append("-")
      .append(rest);
}

TEST(ParseTraceparent, ReadsVersion00AndWhatLaterOnesShareWithIt) {
  for (const std::string& header :
       {Header("00", kTrace, kParent), Header("cc", kTrace, kParent, "01-what-comes-next")}) {
    const TraceContext trace = ParseTraceparent(header);
    EXPECT_EQ(trace.trace_id, kTrace) << header;
    EXPECT_EQ(trace.parent_id, kParent) << header;
  }
}

TEST(ParseTraceparent, TheLowestBitOfTheFlagsSaysWhetherTheTraceIsRecorded) {
  for (const auto& [flags, sampled] : {std::pair{"00", false},
                                       {"01", true},
                                       {"02", false},
                                       {"03", true},
                                       {"fe", false},
                                       {"ff", true}}) {
    EXPECT_EQ(ParseTraceparent(Header("00", kTrace, kParent, flags)).sampled, sampled) << flags;
  }
}

TEST(ParseTraceparent, IgnoresEverythingElse) {
  const std::string zeros(32, '0');
  std::string upper(kTrace);
  upper[1] = 'B';
  for (const std::string& header :
       {std::string(), std::string("00"), std::string(55, '-'), Header("ff", kTrace, kParent),
        Header("00", zeros, kParent), Header("00", kTrace, zeros.substr(0, 16)),
        Header("00", upper, kParent), Header("00", kTrace, kParent, "0"),
        Header("00", kTrace, kParent, "01-more"), Header("cc", kTrace, kParent, "01.more"),
        Header("00", kTrace.substr(1), kParent, "012")}) {
    const TraceContext trace = ParseTraceparent(header);
    EXPECT_EQ(trace.trace_id, "") << header;
    EXPECT_EQ(trace.parent_id, "") << header;
  }
}

}  // namespace
}  // namespace longview::server
