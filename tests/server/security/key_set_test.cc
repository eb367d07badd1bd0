#include "server/security/key_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/errors.h"
#include "server/security/api_keys.h"

namespace longview::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(KeySet, ReadsNamesAndKeysBetweenComments) {
  const auto keys = KeySet::Parse(
      "# keys of the search team\r\n"
      "\n"
      "search:first:with-colon\n"
      "  search:second  \r\n"
      "\t# another comment\n"
      "reports:#third");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->size(), 3u);
  ASSERT_NE(keys->Find("first:with-colon"), nullptr);
  EXPECT_EQ(keys->Find("first:with-colon")->name, "search");
  EXPECT_EQ(keys->Find("second")->name, "search");
  EXPECT_EQ(keys->Find("#third")->name, "reports");
  for (const char* unknown : {"", "firs", "first:with-colon ", "FIRST:WITH-COLON", "search"}) {
    EXPECT_EQ(keys->Find(unknown), nullptr) << unknown;
  }
}

struct BadFile {
  std::string text;
  std::string message;
};

class BadKeySet : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadKeySet, NamesTheLineAndNeverRepeatsIt) {
  const auto keys = KeySet::Parse(GetParam().text);
  ASSERT_FALSE(keys.ok());
  EXPECT_THAT(Message(keys.status()), HasSubstr(GetParam().message));
  EXPECT_THAT(Message(keys.status()), Not(HasSubstr("s3cret")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadKeySet,
    ::testing::Values(BadFile{"", "holds no key"}, BadFile{"# only\n\n# comments\n", "no key"},
                      BadFile{"a:b\ns3cret\n", "line 2: expected name:key"},
                      BadFile{":s3cret", "line 1: the name"},
                      BadFile{"a b:s3cret", "line 1: the name"},
                      BadFile{std::string(65, 'n') + ":s3cret", "line 1: the name"},
                      BadFile{"# c\n\nname:", "line 3: the key"},
                      BadFile{"name: s3cret", "line 1: the key"},
                      BadFile{"name:s3cr\xC3\xA9t", "line 1: the key"},
                      BadFile{"name:" + std::string(513, 'k'), "line 1: the key"},
                      BadFile{"a:s3cret\nb:s3cret", "line 2: the same key as in line 1"},
                      BadFile{"a:k s3cret", "line 1: expected option=value"},
                      BadFile{"a:k\nb:l s3cret=1", "line 2: an unknown option; there are role"},
                      BadFile{"a:k role=", "line 1: role"}, BadFile{"a:k role=s3cret", "role"},
                      BadFile{"a:k role=infer,", "role"}, BadFile{"a:k role=,infer", "role"},
                      BadFile{"a:k max_inflight=0", "max_inflight"},
                      BadFile{"a:k max_inflight=s3cret", "max_inflight"},
                      BadFile{"a:k max_inflight=99999999999", "max_inflight"},
                      BadFile{"a:k tokens_per_second=0", "tokens_per_second"},
                      BadFile{"a:k tokens_per_second=nan", "tokens_per_second"},
                      BadFile{"a:k weight=-1", "weight"}, BadFile{"a:k weight=inf", "weight"},
                      BadFile{"a:k weight=2\na:l weight=3", "line 2: weight: another value than"}));

TEST(KeySet, AKeyWithoutOptionsMayDoEverything) {
  const auto keys = KeySet::Parse("search:s3cret");
  EXPECT_EQ(keys->Find("s3cret")->roles, Roles::All());
  EXPECT_EQ(keys->limits().at("search"), ClientLimits());
}

TEST(KeySet, RolesAreTheKeysAndLimitsTheNames) {
  const auto keys = KeySet::Parse(
      "search:one role=infer  max_inflight=8\ttokens_per_second=0.5\r\n"
      "search:two role=control,metrics weight=2 max_inflight=8\n"
      "reports:three");
  ASSERT_TRUE(keys.ok()) << keys.status();
  const Roles one = keys->Find("one")->roles, two = keys->Find("two")->roles;
  EXPECT_TRUE(one.Has(Role::kInfer) && !one.Has(Role::kControl) && !one.Has(Role::kMetrics));
  EXPECT_TRUE(!two.Has(Role::kInfer) && two.Has(Role::kControl) && two.Has(Role::kMetrics));
  EXPECT_EQ(keys->limits().at("search"),
            (ClientLimits{.max_inflight = 8, .tokens_per_second = 0.5, .weight = 2}));
  EXPECT_EQ(keys->limits().at("reports"), ClientLimits());
}

TEST(ApiKeys, TakesTheBearerScheme) {
  const ApiKeys keys(*KeySet::Parse("search:s3cret"));
  for (const char* header : {"Bearer s3cret", "bearer s3cret", "BEARER   s3cret  "}) {
    const auto client = keys.Authenticate(header);
    ASSERT_TRUE(client.ok()) << header << ": " << client.status();
    EXPECT_EQ(client->name, "search");
  }
}

TEST(ApiKeys, RefusesWithoutRepeatingTheKey) {
  const ApiKeys keys(*KeySet::Parse("search:s3cret"));
  for (const char* header : {"", "Bearer", "Bearer ", "Basic s3cret", "s3cret"}) {
    const auto client = keys.Authenticate(header);
    EXPECT_EQ(client.status().code(), absl::StatusCode::kUnauthenticated) << header;
    EXPECT_EQ(GetErrorDetail(client.status()).reason, "MISSING_KEY") << header;
    EXPECT_THAT(Message(client.status()), Not(HasSubstr("s3cret")));
  }
  const auto client = keys.Authenticate("Bearer canary");
  EXPECT_EQ(GetErrorDetail(client.status()).reason, "WRONG_KEY");
  EXPECT_THAT(Message(client.status()), Not(HasSubstr("canary")));
}

TEST(ApiKeys, ExchangedKeysCountFromThenOn) {
  ApiKeys keys(*KeySet::Parse("search:old"));
  keys.Replace(*KeySet::Parse("search:new"));
  EXPECT_FALSE(keys.Authenticate("Bearer old").ok());
  EXPECT_TRUE(keys.Authenticate("Bearer new").ok());
}

}  // namespace
}  // namespace longview::server
