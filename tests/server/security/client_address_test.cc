#include "server/security/client_address.h"

#include <gtest/gtest.h>

#include <utility>

#include "server/security/proxy_header.h"

namespace longview::server {
namespace {

using Fields = std::vector<std::string_view>;

TEST(IpAddress, ReadsWhatProxiesWrite) {
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, std::string>>{{"10.0.0.1", "10.0.0.1"},
                                                        {"10.0.0.1:80", "10.0.0.1"},
                                                        {"2001:DB8::1", "2001:db8::1"},
                                                        {"[2001:db8::1]:443", "2001:db8::1"},
                                                        {"[2001:db8::1]", "2001:db8::1"},
                                                        {"fe80::1%eth0", "fe80::1"},
                                                        {"::ffff:10.0.0.1", "10.0.0.1"}}) {
    const auto address = IpAddress::Parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->ToString(), expected);
  }
  for (const char* bad : {"", "unknown", "_hidden", "10.0.0", "10.0.0.1.2", "1:2", "[::1", "::g"}) {
    EXPECT_FALSE(IpAddress::Parse(bad)) << bad;
  }
}

TEST(FairnessUnit, IsTheWholeNetworkOfAnIpv6Client) {
  EXPECT_EQ(FairnessUnit("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(FairnessUnit("::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(FairnessUnit("2001:db8:0:1::7"), "2001:db8:0:1::/64");
  EXPECT_EQ(FairnessUnit("2001:db8:0:1:ffff:ffff:ffff:ffff"), FairnessUnit("2001:db8:0:1::7"));
  EXPECT_NE(FairnessUnit("2001:db8:0:2::7"), FairnessUnit("2001:db8:0:1::7"));
  EXPECT_EQ(FairnessUnit("unix"), "unix");
}

TEST(TrustedProxies, RefusesWhatIsNoNetwork) {
  for (const char* bad : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "host", "::/129",
                          "10.0.0.1:80", "[::1]", "10.0.0.1,,x"}) {
    EXPECT_FALSE(TrustedProxies::Parse(bad).ok()) << bad;
  }
  EXPECT_TRUE(TrustedProxies::Parse("")->empty());
}

TEST(TrustedProxies, KnowsItsNetworks) {
  const auto proxies = TrustedProxies::Parse("10.0.0.0/8, 192.168.1.7,2001:db8::/33");
  ASSERT_TRUE(proxies.ok()) << proxies.status();
  for (const char* inside : {"10.255.0.1", "::ffff:10.0.0.1", "192.168.1.7", "2001:db8:7fff::1"}) {
    EXPECT_TRUE(proxies->Trusts(inside)) << inside;
  }
  for (const char* outside : {"11.0.0.1", "192.168.1.8", "2001:db8:8000::1", "::a00:1", "unix"}) {
    EXPECT_FALSE(proxies->Trusts(outside)) << outside;
  }
  EXPECT_TRUE(TrustedProxies::Parse("0.0.0.0/0")->Trusts("1.2.3.4"));
  EXPECT_FALSE(TrustedProxies::Parse("0.0.0.0/0")->Trusts("2001:db8::1"));
}

TEST(TrustedProxies, BelieveNobodyElse) {
  const TrustedProxies none = *TrustedProxies::Parse("");
  const TrustedProxies proxies = *TrustedProxies::Parse("10.0.0.0/8");
  EXPECT_EQ(none.ClientOf("10.0.0.1", Fields{"1.1.1.1"}), "10.0.0.1");
  EXPECT_EQ(proxies.ClientOf("9.9.9.9", Fields{"1.1.1.1"}), "9.9.9.9");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{}), "10.0.0.1");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"1.1.1.1"}), "1.1.1.1");
  // Only what the nearest proxies wrote: the client wrote the rest.
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"6.6.6.6, 1.1.1.1"}), "1.1.1.1");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"6.6.6.6,1.1.1.1, 10.0.0.2"}), "1.1.1.1");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"6.6.6.6", "1.1.1.1", "10.0.0.2:99"}), "1.1.1.1");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"10.0.0.3, 10.0.0.2"}), "10.0.0.3");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"1.1.1.1, junk"}), "10.0.0.1");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"1.1.1.1, junk, 10.0.0.2"}), "10.0.0.2");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"", ","}), "10.0.0.1");
  EXPECT_EQ(proxies.ClientOf("10.0.0.1", Fields{"[2001:db8::5]:80"}), "2001:db8::5");
}

std::string Binary(int command, int family, const std::string& addresses) {
  std::string header("\r\n\r\n\0\r\nQUIT\n", 12);
  header += static_cast<char>(0x20 | command);
  header += static_cast<char>(family << 4 | 1);
  header += static_cast<char>(addresses.size() >> 8);
  header += static_cast<char>(addresses.size() & 0xFF);
  return header + addresses;
}

using Kind = ProxyHeader::Kind;

struct Whole {
  std::string header;
  std::string client;
};

class ProxyHeaders : public ::testing::TestWithParam<Whole> {};

TEST_P(ProxyHeaders, AreReadAtWhateverPointTheyAreCut) {
  const auto& [bytes, client] = GetParam();
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    const ProxyHeader partial = ParseProxyHeader(bytes.substr(0, cut));
    EXPECT_EQ(partial.kind, Kind::kPartial) << cut;
    EXPECT_GT(partial.bytes, cut);
    EXPECT_LE(partial.bytes, bytes.size());
  }
  const ProxyHeader whole = ParseProxyHeader(bytes + "GET / HTTP/1.1\r\n");
  EXPECT_EQ(whole.kind, Kind::kWhole);
  EXPECT_EQ(whole.bytes, bytes.size());
  EXPECT_EQ(whole.client, client);
}

INSTANTIATE_TEST_SUITE_P(
    All, ProxyHeaders,
    ::testing::Values(
        Whole{"PROXY TCP4 1.2.3.4 5.6.7.8 1234 80\r\n", "1.2.3.4"},
        Whole{"PROXY TCP6 2001:db8::1 ::1 1234 80\r\n", "2001:db8::1"},
        Whole{"PROXY UNKNOWN\r\n", ""}, Whole{"PROXY UNKNOWN a b c d\r\n", ""},
        Whole{Binary(1, 1, std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x00\x50\x00\x50", 12)),
              "1.2.3.4"},
        Whole{Binary(1, 2,
                     "\x20\x01\x0d\xb8" + std::string(11, '\0') + "\x01" + std::string(20, 'x') +
                         "extensions"),
              "2001:db8::1"},
        Whole{Binary(0, 0, ""), ""}, Whole{Binary(1, 3, std::string(216, '/')), ""}));

TEST(ProxyHeader, NothingElseIsTakenForOne) {
  for (const std::string& begin :
       {std::string("GET / HTTP/1.1\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("POST "), std::string("\x16\x03\x01"), std::string("PROXX"),
        std::string("\r\n\r\nX")}) {
    EXPECT_EQ(ParseProxyHeader(begin).kind, Kind::kNone) << begin;
  }
  EXPECT_EQ(ParseProxyHeader("P").kind, Kind::kPartial);
  EXPECT_EQ(ParseProxyHeader("").kind, Kind::kPartial);
}

TEST(ProxyHeader, BadOnesAreRefused) {
  for (const std::string& bad :
       {std::string("PROXY TCP4 1.2.3.4 5.6.7.8 1234\r\n"),
        std::string("PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n"), std::string("PROXY TCP4 ::1 ::1 1 2\r\n"),
        std::string("PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n"), std::string("PROXY \r\n"),
        std::string("PROXY TCP4 1.2.3.4 5.6.7.8 1 99999\r\n"), "PROXY " + std::string(200, 'x'),
        Binary(2, 1, std::string(12, 'x')), Binary(1, 1, std::string(11, 'x')),
        Binary(1, 2, std::string(35, 'x')), Binary(1, 0, std::string(4000, 'x')).substr(0, 16)}) {
    EXPECT_EQ(ParseProxyHeader(bad).kind, Kind::kBad) << bad;
  }
  std::string version = Binary(1, 0, "");
  version[12] = 0x11;
  EXPECT_EQ(ParseProxyHeader(version).kind, Kind::kBad);
}

}  // namespace
}  // namespace longview::server
