// Rights of keys: roles, limits and cache spaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "server/errors.h"
#include "server/security/api_keys.h"
#include "server/security/client_quota.h"
#include "server/security/roles.h"

namespace longview::server {
namespace {

using ::testing::HasSubstr;

CallInfo Call(std::string_view method) {
  CallInfo info;
  info.client = info.address = "10.0.0.1";
  info.method = method;
  return info;
}

absl::Status Admit(const ApiKeys& keys, std::string_view key, CallInfo& info) {
  return keys.Admit("Bearer " + std::string(key), info);
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Permission, WhatIsForgottenIsClosed) {
  EXPECT_EQ(PermissionOf("/v9/new"), Permission::kControl);
  EXPECT_EQ(PermissionOf("NewRpc"), Permission::kControl);
  EXPECT_EQ(PermissionOf("/metrics"), Permission::kOpen);
}

TEST(Admission, ARoleIsNeededForWhatItNames) {
  const ApiKeys keys(*KeySet::Parse("i:1 role=infer\nc:2 role=control\nm:3 role=metrics\na:4"));
  struct Case {
    const char* method;
    std::string allowed;
  };
  for (const auto& [method, allowed] :
       {Case{"/v1/classify", "14"}, Case{"ModelInfer", "14"}, Case{"Generate", "14"},
        Case{"/v2/repository/models/{m}/load", "24"}, Case{"RepositoryModelUnload", "24"},
        Case{"LoadModel", "24"}, Case{"/v2/models/stats", "34"}, Case{"ModelStatistics", "34"},
        Case{"/v1/models", "1234"}, Case{"ServerMetadata", "1234"}, Case{"other", "1234"}}) {
    for (const char* key : {"1", "2", "3", "4"}) {
      CallInfo info = Call(method);
      const absl::Status status = Admit(keys, key, info);
      const bool may = allowed.find(key) != std::string::npos;
      EXPECT_EQ(status.ok(), may) << method << " " << key;
      if (may) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
      EXPECT_EQ(GetErrorDetail(status).reason, "ROLE_MISSING");
      EXPECT_THAT(Message(status), HasSubstr("lacks the role"));
    }
  }
}

TEST(Admission, MetricsAskForAKeyWhereOneIsThereForThem) {
  for (const auto& [keys, closed] : {std::pair{"a:4\ni:1 role=infer", false},
                                     std::pair{"a:4\ni:1 role=infer\nm:3 role=metrics", true}}) {
    ApiKeys admission(*KeySet::Parse(keys));
    CallInfo open = Call("/metrics");
    EXPECT_EQ(admission.Admit("", open).code(),
              closed ? absl::StatusCode::kUnauthenticated : absl::StatusCode::kOk);
    CallInfo probe = Call("/livez");
    EXPECT_TRUE(admission.Admit("", probe).ok());
    if (!closed) continue;
    for (const auto& [key, may] :
         {std::pair{"1", false}, std::pair{"3", true}, std::pair{"4", true}}) {
      CallInfo info = Call("/metrics");
      EXPECT_EQ(Admit(admission, key, info).ok(), may) << key;
    }
    admission.Replace(*KeySet::Parse("a:4"));
    EXPECT_TRUE(admission.Admit("", open).ok()) << "the file may change";
  }
}

TEST(Admission, FillsInWhoCallsAndLeavesOpenCallsAlone) {
  const ApiKeys keys(*KeySet::Parse("search:k weight=3"));
  CallInfo info = Call("/v1/classify");
  ASSERT_TRUE(Admit(keys, "k", info).ok());
  EXPECT_EQ(info.client, "search");
  EXPECT_EQ(info.caller(), "search");
  EXPECT_EQ(info.weight, 3);
  EXPECT_EQ(info.quota, nullptr);
  CallInfo open = Call("/livez");
  EXPECT_TRUE(keys.Admit("", open).ok());
  EXPECT_EQ(open.caller(), "10.0.0.1");
  CallInfo none = Call("/v1/classify");
  EXPECT_EQ(keys.Admit("", none).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(none.caller(), "10.0.0.1");
}

TEST(Admission, EveryNameHasASpaceOfItsOwnUnlessPrefixesAreShared) {
  const auto space = [](const ApiKeys& keys, const char* key) {
    CallInfo info = Call("Generate");
    EXPECT_TRUE(Admit(keys, key, info).ok());
    return info.cache_space;
  };
  const char* file = "a:1\na:2\nb:3";
  ApiKeys apart(*KeySet::Parse(file));
  const uint64_t a = space(apart, "1");
  EXPECT_NE(a, 0u);
  EXPECT_EQ(space(apart, "2"), a);
  EXPECT_NE(space(apart, "3"), a);
  EXPECT_NE(space(apart, "3"), 0u);
  apart.Replace(*KeySet::Parse("a:new"));
  EXPECT_EQ(space(apart, "new"), a);
  const ApiKeys shared(*KeySet::Parse(file), /*share_prefixes=*/true);
  for (const char* key : {"1", "2", "3"}) EXPECT_EQ(space(shared, key), 0u);
}

TEST(Admission, PlacesInFlightAreTheNames) {
  ApiKeys keys(*KeySet::Parse("a:1 max_inflight=2\na:2\nb:3 max_inflight=1"));
  CallInfo first = Call("Generate"), second = Call("/v1/classify"), third = Call("Embed");
  ASSERT_TRUE(Admit(keys, "1", first).ok());
  ASSERT_TRUE(Admit(keys, "2", second).ok());
  const absl::Status full = Admit(keys, "1", third);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(full), HasSubstr("2 requests in flight, its limit is 2"));
  EXPECT_TRUE(GetErrorDetail(full).retry_after.has_value());
  // Others have their own, and what gives back or only lists takes none.
  CallInfo other = Call("Embed"), close = Call("CloseDocument"), list = Call("/v1/models");
  EXPECT_TRUE(Admit(keys, "3", other).ok());
  EXPECT_TRUE(Admit(keys, "1", close).ok());
  EXPECT_TRUE(Admit(keys, "1", list).ok());
  // Requests under way still count after the file changed.
  keys.Replace(*KeySet::Parse("a:1 max_inflight=3"));
  EXPECT_TRUE(Admit(keys, "1", third).ok());
  CallInfo fourth = Call("Embed");
  EXPECT_FALSE(Admit(keys, "1", fourth).ok());
  // Copies share the place; it is free with the first that is recorded, or the last that goes.
  CallInfo copy = first;
  first.permit->Release();
  EXPECT_TRUE(Admit(keys, "1", fourth).ok());
  copy = first = CallInfo();
  second = third = fourth = CallInfo();
  for (CallInfo* info : {&first, &second, &third}) {
    *info = Call("Embed");
    EXPECT_TRUE(Admit(keys, "1", *info).ok());
  }
}

TEST(ClientQuota, TokensAreOwedAndComeBack) {
  ClientQuota quota("a", {.tokens_per_second = 100});
  ClientQuota::Time now{std::chrono::hours(5)};
  const auto enter = [&] {
    const absl::Status status = quota.Enter(now);
    if (status.ok()) quota.Leave();
    return status;
  };
  ASSERT_TRUE(enter().ok());
  quota.Spend(100, now);
  EXPECT_FALSE(enter().ok());
  now += std::chrono::milliseconds(10);
  ASSERT_TRUE(enter().ok());
  // More than the bucket holds is let in once, and waited for by those behind it.
  quota.Spend(1001, now);
  const absl::Status owed = enter();
  EXPECT_EQ(owed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetail(owed).reason, "CLIENT_TOKENS");
  EXPECT_EQ(GetErrorDetail(owed).retry_after, absl::Seconds(10));
  now += std::chrono::milliseconds(9'990);
  EXPECT_FALSE(enter().ok());
  now += std::chrono::milliseconds(20);
  EXPECT_TRUE(enter().ok());
  // An idle hour saves up a second's worth.
  now += std::chrono::hours(1);
  ASSERT_TRUE(enter().ok());
  quota.Spend(101, now);
  EXPECT_FALSE(enter().ok());
}

TEST(ClientQuota, TheRateHoldsOverTime) {
  ClientQuota quota("a", {.tokens_per_second = 100});
  ClientQuota::Time now{};
  int64_t spent = 0;
  for (int i = 0; i < 100'000; ++i, now += std::chrono::milliseconds(1)) {
    if (!quota.Enter(now).ok()) continue;
    quota.Leave();
    const int64_t tokens = 1 + i % 700;
    quota.Spend(tokens, now);
    spent += tokens;
  }
  EXPECT_GE(spent, 99 * 100);
  EXPECT_LE(spent, 101 * 100 + 700);
}

TEST(ClientQuota, NewLimitsKeepWhatIsOwed) {
  ClientQuota quota("a", {});
  ClientQuota::Time now{std::chrono::hours(1)};
  quota.Spend(1'000'000, now);
  EXPECT_TRUE(quota.Enter(now).ok());
  quota.SetLimits({.max_inflight = 2, .tokens_per_second = 10});
  EXPECT_TRUE(quota.Enter(now).ok());
  EXPECT_EQ(quota.inflight(), 2);
  EXPECT_FALSE(quota.Enter(now).ok());
  quota.Leave();
  quota.Spend(110, now);
  quota.SetLimits({.tokens_per_second = 20});
  const absl::Status owed = quota.Enter(now);
  ASSERT_FALSE(owed.ok());
  EXPECT_EQ(GetErrorDetail(owed).retry_after, absl::Seconds(5));
  quota.SetLimits({});
  EXPECT_TRUE(quota.Enter(now).ok());
}

}  // namespace
}  // namespace longview::server
