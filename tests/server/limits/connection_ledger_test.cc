// Connections: caps, and who makes room at the cap.
#include "server/limits/connection_ledger.h"

#include <gtest/gtest.h>

#include <vector>

namespace longview::server {
namespace {

using Entry = std::unique_ptr<ConnectionLedger::Entry>;

class Ledger : public ::testing::Test {
 protected:
  Ledger() : ledger({.total = 4, .per_address = 3}) {}

  // Null if refused; a closed connection's name is kept in `closed`.
  Entry Admit(const std::string& address, const std::string& name, bool busy) {
    Entry entry = ledger.Admit(address, [this, name] { closed.push_back(name); });
    if (entry != nullptr && busy) entry->BeginCall();
    return entry;
  }

  ConnectionLedger ledger;
  std::vector<std::string> closed;
};

TEST_F(Ledger, BusyConnectionsHoldTheirPlaces) {
  std::vector<Entry> held;
  for (int i = 0; i < 3; ++i) held.push_back(Admit("a", "a", true));
  EXPECT_EQ(Admit("a", "more", true), nullptr);
  EXPECT_EQ(ledger.refused(), 1u);
  held.push_back(Admit("b", "b", true));
  EXPECT_NE(held.back(), nullptr);
  EXPECT_EQ(Admit("c", "c", true), nullptr) << "the port is full";
  EXPECT_EQ(ledger.open(), 4);
  held.clear();
  EXPECT_EQ(ledger.open(), 0);
  EXPECT_TRUE(closed.empty());
}

TEST_F(Ledger, AProxyHasNoLimitButThePorts) {
  using PerAddress = ConnectionLedger::PerAddress;
  std::vector<Entry> held;
  for (int i = 0; i < 5; ++i) {
    held.push_back(ledger.Admit(
        "proxy", [this] { closed.push_back("proxy"); }, PerAddress::kUnlimited));
    ASSERT_NE(held.back(), nullptr) << i;
    EXPECT_EQ(closed.size(), i < 4 ? 0u : 1u);
  }
}

TEST_F(Ledger, TheLongestIdleOfTheAddressMakesRoom) {
  Entry busy = Admit("a", "busy", true);
  Entry second = Admit("a", "second", true);
  Entry first = Admit("a", "first", true);
  first->EndCall();
  second->EndCall();
  Entry next = Admit("a", "next", true);
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(closed, std::vector<std::string>{"first"});
  EXPECT_EQ(ledger.open("a"), 3);
  first.reset();
  EXPECT_EQ(ledger.open("a"), 3);
}

TEST_F(Ledger, AtTheTotalTheBusiestAddressMakesRoom) {
  std::vector<Entry> held;
  held.push_back(Admit("b", "b", false));
  for (const char* name : {"a1", "a2", "a3"}) held.push_back(Admit("a", name, false));
  Entry next = Admit("c", "c", true);
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(closed, std::vector<std::string>{"a1"});
  EXPECT_EQ(ledger.open(), 4);
}

TEST_F(Ledger, CallsMayEndWhileTheirConnectionLeaves) {
  std::vector<Entry> held;
  for (const char* name : {"1", "2", "3"}) held.push_back(Admit("a", name, false));
  Entry next = Admit("a", "4", true);
  ASSERT_EQ(closed, std::vector<std::string>{"1"});
  held[0]->BeginCall();
  held[0]->EndCall();
  held.clear();
  EXPECT_EQ(ledger.open("a"), 1);
}

TEST_F(Ledger, AFloodOfIdleConnectionsNeverRefusesANewcomer) {
  std::vector<Entry> held;
  for (int i = 0; i < 300; ++i) {
    held.push_back(Admit("a", std::to_string(i), false));
    ASSERT_NE(held.back(), nullptr) << i;
    // The transport closes whom it is told to.
    for (const std::string& name : closed) held[std::stoul(name)].reset();
    closed.clear();
  }
  EXPECT_EQ(ledger.open(), 3);
}

TEST(ConnectionLimits, LeaveAMarginOfDescriptors) {
  for (const int descriptors : {64, 256, 1024, 65536, 1 << 20}) {
    const ConnectionLimits limits = ConnectionLimitsFor(descriptors, 0, 0);
    EXPECT_GE(limits.total, 1);
    EXPECT_GE(limits.per_address, 1);
    EXPECT_LE(limits.per_address, limits.total);
    if (descriptors >= 256) {
      EXPECT_LE(3 * limits.total, descriptors - 64) << descriptors;
    }
  }
  EXPECT_EQ(ConnectionLimitsFor(1024, 7, 0).total, 7);
  EXPECT_EQ(ConnectionLimitsFor(1024, 7, 9).per_address, 7);
  EXPECT_LT(ConnectionLimitsFor(256, 10'000, 0).total, 256);
}

}  // namespace
}  // namespace longview::server
