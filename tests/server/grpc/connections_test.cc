// Limits of an address hold for all that one client has.
#include "server/grpc/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <new>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace longview::testing {
namespace {

// A connection of `address`, and its client's end.
class Peer {
 public:
  Peer(server::Connections& connections, const std::string& address) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
    second_ =
        connections.Admit(ends_[0], absl::StrCat("ipv6:%5B", address, "%5D:", ends_[0]), address);
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

ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(ConnectionsTest, NoDescriptorStaysOpenWhereAdmissionFindsNoMemory) {
  server::ConnectionRules rules;
  rules.limits = {.total = 1, .per_address = 1};
  bool fails = false;
  rules.ends = [&fails](server::EndCause, std::string_view) {
    if (fails) throw std::bad_alloc();
  };
  server::Connections connections(rules, [] {});
  const Peer first(connections, "2001:db8::1");
  EXPECT_TRUE(first.admitted());
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const ptrdiff_t before = OpenDescriptors();
  fails = true;
  // The first makes room, which cannot be told.
  EXPECT_THROW(connections.Admit(ends[0], "ipv6:%5B2001:db8::2%5D:1", "2001:db8::2"),
               std::bad_alloc);
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_FALSE(first.open());
  fails = false;
  const Peer next(connections, "2001:db8::3");
  EXPECT_TRUE(next.admitted() && next.open()) << "the one that failed takes no room";
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace longview::testing
