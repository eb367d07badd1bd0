// Bytes in memory: what is granted, what is refused, what comes back.
#include "server/limits/byte_budget.h"

#include <gtest/gtest.h>

#include "server/errors.h"

namespace longview::server {
namespace {

constexpr ByteLimits kLimits = {.total = 250, .per_client = 100};

TEST(ByteBudget, HoldsUntilTheReservationGoes) {
  ByteBudget budget(kLimits);
  {
    auto first = budget.TryReserve("a", 60);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(budget.held("a"), 60u);
    const ByteBudget::Reservation moved = *std::move(first);
    EXPECT_EQ(budget.held(), 60u);
  }
  EXPECT_EQ(budget.held("a"), 0u);
  EXPECT_EQ(budget.held(), 0u);
}

TEST(ByteBudget, OneClientDoesNotTakeAnothersShare) {
  ByteBudget budget(kLimits);
  const auto first = budget.TryReserve("a", 100);
  ASSERT_TRUE(first.ok());
  const auto second = budget.TryReserve("a", 1);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(GetErrorDetail(second.status()).retry_after.has_value());
  EXPECT_TRUE(budget.TryReserve("b", 100).ok());
}

TEST(ByteBudget, AllTogetherHaveALimit) {
  ByteBudget budget(kLimits);
  const auto a = budget.TryReserve("a", 100);
  const auto b = budget.TryReserve("b", 100);
  EXPECT_EQ(budget.TryReserve("c", 51).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(budget.TryReserve("c", 50).ok());
}

TEST(ByteBudget, WhatCanNeverFitIsTheRequestsFault) {
  ByteBudget budget(kLimits);
  const auto never = budget.TryReserve("a", 101);
  EXPECT_EQ(never.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(never.status().message()).find("101"), std::string::npos);
  EXPECT_NE(std::string(never.status().message()).find("100"), std::string::npos);
}

TEST(ByteBudget, ReservationsGrowAndShrink) {
  ByteBudget budget(kLimits);
  auto held = budget.TryReserve("a", 0);
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(held->Resize(90).ok());
  EXPECT_FALSE(held->Resize(101).ok());
  EXPECT_EQ(held->bytes(), 90u);
  EXPECT_TRUE(held->Resize(10).ok());
  EXPECT_EQ(budget.held("a"), 10u);
  held->Charge(500);
  EXPECT_EQ(budget.held(), 500u);
  EXPECT_FALSE(budget.TryReserve("a", 1).ok());
  EXPECT_FALSE(budget.TryReserve("b", 1).ok());
  held->Reset();
  EXPECT_EQ(budget.held(), 0u);
  EXPECT_TRUE(budget.TryReserve("b", 1).ok());
}

TEST(ByteBudget, AMessageOfTheLimitFitsWithItsParsedForm) {
  const uint64_t limit = uint64_t{64} << 20;
  ByteBudget budget(ByteLimitsFor(limit));
  EXPECT_TRUE(budget.TryReserve("a", 2 * limit + 1000).ok());
}

}  // namespace
}  // namespace longview::server
