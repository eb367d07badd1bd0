#include "server/security/proxy_header.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace longview::server {
namespace {

using Kind = ProxyHeader::Kind;

// Two ends of a TCP connection.
class Ends {
 public:
  Ends() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener, raw, size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, raw, &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client_, raw, size), 0);
    server_ = accept(listener, nullptr, nullptr);
    close(listener);
  }
  ~Ends() {
    Leave();
    close(server_);
  }

  void Send(std::string_view bytes) {
    EXPECT_EQ(send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void Leave() {
    if (client_ >= 0) close(client_);
    client_ = -1;
  }
  bool Readable(int milliseconds) {
    pollfd waiting{server_, POLLIN, 0};
    return poll(&waiting, 1, milliseconds) == 1;
  }
  ProxyHeader Take() { return TakeProxyHeader(server_); }
  std::string Rest() {
    char bytes[100];
    const ssize_t size = recv(server_, bytes, sizeof(bytes), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(bytes, static_cast<size_t>(size));
  }

 private:
  int client_ = -1;
  int server_ = -1;
};

constexpr std::string_view kHeader = "PROXY TCP4 1.2.3.4 5.6.7.8 1234 80\r\n";

TEST(ProxySocket, TakesTheHeaderAndNothingElse) {
  Ends ends;
  EXPECT_EQ(ends.Take().kind, Kind::kPartial);
  ends.Send(std::string(kHeader) + "GET / HTTP/1.1");
  ASSERT_TRUE(ends.Readable(10'000));
  const ProxyHeader header = ends.Take();
  EXPECT_EQ(header.kind, Kind::kWhole);
  EXPECT_EQ(header.client, "1.2.3.4");
  EXPECT_EQ(ends.Rest(), "GET / HTTP/1.1");
}

TEST(ProxySocket, LeavesOtherConnectionsAsTheyAre) {
  Ends ends;
  ends.Send("GET / HTTP/1.1");
  ASSERT_TRUE(ends.Readable(10'000));
  EXPECT_EQ(ends.Take().kind, Kind::kNone);
  EXPECT_EQ(ends.Rest(), "GET / HTTP/1.1");
  ends.Send("x");
  EXPECT_TRUE(ends.Readable(10'000));
}

TEST(ProxySocket, WaitsForTheRestWithoutSpinning) {
  Ends ends;
  for (size_t at = 0; at + 1 < kHeader.size(); at += 5) {
    ends.Send(kHeader.substr(at, std::min<size_t>(5, kHeader.size() - 1 - at)));
    ASSERT_TRUE(ends.Readable(10'000)) << at;
    EXPECT_EQ(ends.Take().kind, Kind::kPartial);
    EXPECT_FALSE(ends.Readable(0)) << at;
  }
  ends.Send("\n");
  ASSERT_TRUE(ends.Readable(10'000));
  EXPECT_EQ(ends.Take().kind, Kind::kWhole);
  ends.Send("x");
  EXPECT_TRUE(ends.Readable(10'000));
}

TEST(ProxySocket, APeerThatLeavesWithinAHeaderIsBad) {
  for (const std::string_view sent : {std::string_view(), kHeader.substr(0, 10)}) {
    Ends ends;
    if (!sent.empty()) {
      ends.Send(sent);
      ASSERT_TRUE(ends.Readable(10'000));
    }
    EXPECT_EQ(ends.Take().kind, Kind::kPartial);
    ends.Leave();
    ASSERT_TRUE(ends.Readable(10'000));
    EXPECT_EQ(ends.Take().kind, Kind::kBad);
  }
}

}  // namespace
}  // namespace longview::server
