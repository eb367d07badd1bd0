#include "server/log/line_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "server/log/bounded_write.h"
#include "server/log/log.h"

namespace longview::server {
namespace {

// A pipe that holds 4 KiB, read only when a test says so.
class Pipe {
 public:
  // A pipe of one page is full for poll() as soon as anything is in it.
  explicit Pipe(int bytes = 4096) {
    EXPECT_EQ(pipe(ends_), 0);
    fcntl(ends_[1], F_SETPIPE_SZ, bytes);
  }
  ~Pipe() {
    CloseReader();
    close(ends_[1]);
  }

  int writer() const { return ends_[1]; }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }

  // Reads until `last` has come; returns everything read after 10 s without it.
  std::string ReadUntil(const std::string& last) {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text;
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (text.find(last) == std::string::npos && absl::Now() < end) {
      char buffer[4096];
      const ssize_t count = read(ends_[0], buffer, sizeof(buffer));
      if (count > 0) text.append(buffer, static_cast<size_t>(count));
      if (count <= 0) absl::SleepFor(absl::Milliseconds(1));
    }
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

std::string Lost(uint64_t lines) { return "lost " + std::to_string(lines); }

TEST(BoundedWriteTest, GivesUpWhenNobodyReads) {
  Pipe pipe;
  const size_t written =
      BoundedWrite(pipe.writer(), std::string(100'000, 'x'), absl::Milliseconds(10));
  EXPECT_GT(written, 0u);
  EXPECT_LT(written, 100'000u);
  EXPECT_EQ(BoundedWrite(pipe.writer(), "more", absl::ZeroDuration()), 0u);
}

TEST(BoundedWriteTest, ABrokenDescriptorNeedsNoFurtherAttempt) {
  signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.CloseReader();
  EXPECT_EQ(BoundedWrite(pipe.writer(), "line", absl::Seconds(1)), 4u);
}

TEST(LineQueueTest, WritesLinesInOrder) {
  Pipe pipe(65536);
  LineQueue lines(pipe.writer(), 1 << 20, Lost);
  for (int i = 0; i < 100; ++i) lines.Add("line " + std::to_string(i));
  EXPECT_TRUE(lines.Flush(absl::Seconds(10)));
  const std::string text = pipe.ReadUntil("line 99\n");
  EXPECT_TRUE(text.starts_with("line 0\nline 1\n")) << text.substr(0, 100);
  EXPECT_EQ(lines.dropped(), 0u);
}

// How many writes carry `lines` lines that come one after the other.
int WritesOf(int lines) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);  // A message per write.
  {
    LineQueue queue(ends[1], 1 << 20, Lost);
    for (int i = 0; i < lines; ++i) {
      queue.Add("line");
      absl::SleepFor(absl::Microseconds(100));
    }
    EXPECT_TRUE(queue.Flush(absl::Seconds(10)));
  }
  close(ends[1]);
  int writes = 0;
  char buffer[8192];
  while (read(ends[0], buffer, sizeof(buffer)) > 0) ++writes;
  close(ends[0]);
  return writes;
}

// A busy machine may let each line come alone, but not every time.
TEST(LineQueueTest, LinesOfAMomentLeaveTogether) {
  constexpr int kLines = 40;
  int fewest = kLines;
  for (int i = 0; i < 20 && fewest > kLines / 4; ++i) fewest = std::min(fewest, WritesOf(kLines));
  EXPECT_LE(fewest, kLines / 4);
}

TEST(LineQueueTest, NobodyWaitsForAReaderThatStopped) {
  Pipe pipe;
  constexpr int kLines = 1000;
  const std::string line(99, 'x');
  {
    LineQueue lines(pipe.writer(), 10'000, Lost);
    for (int i = 0; i < kLines; ++i) lines.Add(line);
    // Two shares of 100 lines and what fits the pipe are all that can be under way.
    EXPECT_GE(lines.dropped(), 700u);
    EXPECT_FALSE(lines.Flush(absl::Milliseconds(10)));

    const std::string report = Lost(lines.dropped()) + "\n";
    EXPECT_NE(pipe.ReadUntil(report).find(report), std::string::npos);
    lines.Add("afterwards");
    EXPECT_NE(pipe.ReadUntil("afterwards\n").find("afterwards"), std::string::npos);
    for (int i = 0; i < kLines; ++i) lines.Add(line);
    lines.Add("end");
  }
  // The queue has ended, though nobody has read.
}

TEST(LogTest, TheLevelChangesAtRunTime) {
  Pipe pipe;
  Log log(LogFormat::kText, LogLevel::kWarning, pipe.writer());
  log.Info("quiet");
  log.set_level(LogLevel::kDebug);
  log.Debug("loud");
  log.Flush();
  const std::string text = pipe.ReadUntil("loud\n");
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_NE(text.find("debug loud"), std::string::npos);
}

TEST(LogTest, ALogThatNobodyReadsHoldsUpNothing) {
  Pipe pipe;
  // The log also ends without a reader of its pipe.
  Log log(LogFormat::kJson, LogLevel::kInfo, pipe.writer());
  const std::string value(1000, 'x');
  for (int i = 0; i < 10'000; ++i) log.Info("request", {{"model", value}});
  EXPECT_GT(log.dropped(), 0u);
}

}  // namespace
}  // namespace longview::server
