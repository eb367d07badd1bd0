// Options that every element of a list gets a copy of.
#include "server/api/calls/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "longview/v1/text.pb.h"
#include "server/errors.h"

namespace longview::testing {
namespace {

using longview::v1::EmbedRequest;
using server::Like;
using ::testing::HasSubstr;

TEST(Copies, ManyOfALongMemberAreRefusedByName) {
  Like<EmbedRequest> like;
  like->set_prompt(std::string(64 << 10, 'x'));
  like->set_pooling("mean");
  EXPECT_EQ(like.Copies(1)->size(), 1u);
  EXPECT_EQ(like.Copies(200)->back().prompt().size(), 64u << 10);
  const absl::Status status = like.Copies(2048, {.elements = "inputs"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server::GetErrorDetail(status).param, "prompt");
  for (const char* said :
       {"prompt 65", "pooling ", "for each of 2048 inputs", "limit is 16777216"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(said));
  }
}

TEST(Copies, OneElementMayHaveWhatItSent) {
  Like<models::Request> like;
  like->prompt = std::string(32 << 20, 'x');
  EXPECT_TRUE(like.Copies(1).ok());
  EXPECT_FALSE(like.Copies(2).ok());
}

TEST(Copies, MembersThatAreListsOrMapsCountAsWhatTheyHold) {
  Like<models::Request> biased;
  biased->generation.emplace().others["logit_bias"] = std::string(1 << 20, '1');
  EXPECT_THAT(std::string(biased.Copies(1000).status().message()), HasSubstr("logit_bias: "));
  Like<models::Request> stopped;
  stopped->generation.emplace().stop.assign(10'000, "");
  EXPECT_THAT(std::string(stopped.Copies(1000).status().message()), HasSubstr("stop: "));
  Like<models::Request> others;
  others->tokens.emplace().ids.resize(1 << 20);
  EXPECT_THAT(std::string(others.Copies(1000).status().message()), HasSubstr("other members: "));
  Like<EmbedRequest> listed;
  for (int i = 0; i < 4096; ++i) listed->add_chunks()->set_end(i);
  EXPECT_THAT(std::string(listed.Copies(1000).status().message()), HasSubstr("chunks: "));
}

TEST(Copies, ACallersWordsAndLimit) {
  Like<models::Request> like;
  like->text = std::string(1000, 'q');
  const absl::Status status = like.Copies(100, {50'000, "documents", "query"}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("query: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("100 documents"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit is 50000"));
  EXPECT_TRUE(like.Copies(50, {50'000, "documents", "query"}).ok());
}

}  // namespace
}  // namespace longview::testing
