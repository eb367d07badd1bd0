// An address that floods the port with calls: what becomes of its other connections.
#include "tests/server/grpc/fixture.h"
#include "tests/server/grpc/raw_http2.h"
#include "tests/server/limits/heard_ends.h"

namespace longview::testing {
namespace {

using server::EndCause;

constexpr char kClassify[] = "/longview.v1.TextService/Classify";
constexpr char kUnknown[] = "/longview.v1.TextService/NoSuchMethod";
constexpr char kOther[] = "127.0.0.2";
constexpr uint32_t kWindow = 65535;

class ShutOut : protected WithHeardEnds, public GrpcFixture {
 protected:
  ShutOut() : GrpcFixture(server::ApiOptions(), Options(ends)) {}

  static server::GrpcServerOptions Options(HeardEnds& ends) {
    server::GrpcServerOptions options;
    options.ends = ends.Listener();
    options.shut_out = absl::Hours(1);
    return options;
  }

  // Opens and resets calls until the connection is closed.
  static void Flood(RawHttp2& client) {
    const uint32_t most = 400'000;
    for (uint32_t stream = 1; !client.over() && stream < most; stream += 2) {
      client.CallAndReset(stream, kClassify);
      if (stream % 2000 == 1) client.Ended(0, absl::Microseconds(1));
    }
    ASSERT_TRUE(client.over()) << "the server takes any number of calls";
  }

  static bool Serves(RawHttp2& client) {
    client.Call(1, kUnknown);
    return client.Ended(1) && !client.over();
  }

  int Told() {
    return ends.Count(EndCause::kResets) + ends.Count(EndCause::kCalls) +
           ends.Count(EndCause::kFlood);
  }
};

TEST_F(ShutOut, NewConnectionsOfTheAddressAreRefused) {
  RawHttp2 client(port, kWindow);
  Flood(client);
  EXPECT_TRUE(Eventually([&] { return Told() == 1; }));
  RawHttp2 next(port, kWindow);
  EXPECT_FALSE(Serves(next));
  EXPECT_TRUE(next.over());
  EXPECT_EQ(Told(), 2);
  RawHttp2 other(port, kWindow, kOther);
  EXPECT_TRUE(Serves(other));
}

TEST_F(ShutOut, YoungConnectionsOfTheAddressAreClosed) {
  RawHttp2 own(port, kWindow);
  RawHttp2 other(port, kWindow, kOther);
  EXPECT_TRUE(Serves(own));
  RawHttp2 client(port, kWindow);
  Flood(client);
  own.Ended(3);
  EXPECT_TRUE(own.over());
  EXPECT_TRUE(Serves(other));
}

TEST_F(ShutOut, TheAddressOfAProxyStaysOpen) {
  server::GrpcServer behind(backend.api, nullptr, *server::TrustedProxies::Parse("127.0.0.0/8"));
  server::GrpcServerOptions options = Options(ends);
  options.port = 0;
  options.bytes = &backend.bytes;
  const absl::StatusOr<int> bound = behind.Start(options);
  ASSERT_TRUE(bound.ok()) << bound.status();
  RawHttp2 before(*bound, kWindow);
  RawHttp2 client(*bound, kWindow);
  Flood(client);
  RawHttp2 next(*bound, kWindow);
  EXPECT_TRUE(Serves(before));
  EXPECT_TRUE(Serves(next));
}

TEST_F(ShutOut, CallsThatEndWithoutTheirMessageCountAsLeft) {
  RawHttp2 client(port, kWindow);
  uint32_t stream = 1;
  // Few at a time, so that no other limit is passed.
  for (int turn = 0; turn < 400 && !client.over(); ++turn) {
    for (int i = 0; i < 250; ++i, stream += 2) client.CallWithoutMessage(stream, kClassify);
    client.Ended(stream - 2);
  }
  EXPECT_TRUE(client.over());
  EXPECT_TRUE(Eventually([&] { return ends.Count(EndCause::kResets) > 0; }));
}

}  // namespace
}  // namespace longview::testing
