// Limits of an address hold for all that one client has.
#include "server/grpc/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"

namespace longview::testing {
namespace {

// A connection of `address`, and its client's end.
class Peer {
 public:
  Peer(server::Connections& connections, const std::string& address) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
    second_ = connections.Admit(ends_[0], absl::StrCat("ipv6:%5B", address, "%5D:", ends_[0]),
                                address);
  }
  ~Peer() {
    for (const int end : ends_) close(end);
  }

  bool admitted() const { return second_ >= 0; }
  bool open() const {
    char byte;
    return recv(ends_[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
  int second_ = -1;
};

TEST(ConnectionsTest, AddressesOfOneNetworkAreOneClients) {
  server::ConnectionRules rules;
  rules.limits = {.total = 10, .per_address = 1};
  server::Connections connections(rules, [] {});
  const Peer first(connections, "2001:db8::1");
  EXPECT_TRUE(first.admitted() && first.open());
  const Peer neighbour(connections, "2001:db8:0:1::1");
  EXPECT_TRUE(neighbour.admitted() && first.open()) << "another client's";
  const Peer same(connections, "2001:db8::2");
  EXPECT_TRUE(same.admitted() && same.open());
  EXPECT_FALSE(first.open()) << "made room for the next of its /64";
  EXPECT_TRUE(neighbour.open());
}

}  // namespace
}  // namespace longview::testing
