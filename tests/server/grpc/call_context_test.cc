#include "server/grpc/call_context.h"

#include <gtest/gtest.h>

namespace longview::server {
namespace {

TEST(PeerAddress, DropsSchemeAndPort) {
  EXPECT_EQ(PeerAddress("ipv4:10.0.0.1:443"), "10.0.0.1");
  EXPECT_EQ(PeerAddress("ipv6:[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(PeerAddress("ipv6:%5B::1%5D:443"), "::1");
  EXPECT_EQ(PeerAddress("unix:/run/socket"), "unix");
  EXPECT_EQ(PeerAddress("unix-abstract:name"), "unix");
  EXPECT_EQ(PeerAddress(""), "");
  EXPECT_EQ(PeerAddress("ipv6:["), "");
}

}  // namespace
}  // namespace longview::server
