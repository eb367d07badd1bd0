#include "server/grpc/library_settings.h"

#include <gtest/gtest.h>

namespace longview::server {
namespace {

TEST(ReadLimit, TheExperimentIsOffUnlessItIsNamed) {
  EXPECT_EQ(WithoutReadChunks(""), "-tcp_read_chunks");
  EXPECT_EQ(WithoutReadChunks("tcp_rcv_lowat"), "tcp_rcv_lowat,-tcp_read_chunks");
  EXPECT_EQ(WithoutReadChunks("tcp_read_chunks"), "tcp_read_chunks");
  EXPECT_EQ(WithoutReadChunks("-tcp_read_chunks,tcp_rcv_lowat"), "-tcp_read_chunks,tcp_rcv_lowat");
}

}  // namespace
}  // namespace longview::server
