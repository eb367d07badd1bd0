#include "server/scheduler/return_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

const absl::Time kStart = absl::UnixEpoch();

// ReturnLine::Next for lists that each came at a time of their own.
class ReturnLineTest : public testing::Test {
 protected:
  absl::Duration Next(ReturnLine& line, const std::string& client, absl::Duration room,
                      double seconds, absl::Time now) {
    return line.Next({client, kStart + absl::Nanoseconds(++lists_), seconds}, room, now);
  }

 private:
  int lists_ = 0;
};

TEST_F(ReturnLineTest, EachComesAfterThoseRefusedBefore) {
  ReturnLine line(10);
  const absl::Duration room = absl::Seconds(4);
  EXPECT_EQ(Next(line, "a", room, 2, kStart), absl::Seconds(6));
  EXPECT_EQ(Next(line, "a", room, 2, kStart), absl::Seconds(9));
  EXPECT_EQ(Next(line, "b", room, 2, kStart), absl::Seconds(12));
}

TEST_F(ReturnLineTest, AListHasOneTime) {
  ReturnLine line(10);
  const Returning list = {"a", kStart, 2};
  EXPECT_EQ(line.Next(list, absl::Seconds(4), kStart), absl::Seconds(6));
  EXPECT_EQ(line.Next(list, absl::Seconds(4.5), kStart + absl::Seconds(1)), absl::Seconds(4.5));
  EXPECT_EQ(Next(line, "a", absl::Seconds(4), 2, kStart), absl::Seconds(9));
  EXPECT_EQ(line.Next({"b", kStart, 2}, absl::Seconds(4), kStart), absl::Seconds(12));
}

TEST_F(ReturnLineTest, OneAloneIsToldWhenThereIsRoom) {
  ReturnLine line(10);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Next(line, "a", absl::Seconds(1), 0.5, kStart + i * absl::Seconds(10)),
              absl::Seconds(1.5));
  }
  EXPECT_EQ(Next(line, "a", absl::Milliseconds(10), 0.5, kStart + absl::Seconds(50)),
            absl::Milliseconds(30));
}

TEST_F(ReturnLineTest, NoDelayIsLongerThanClientsObey) {
  ReturnLine line(1000);
  absl::Duration longest;
  for (int i = 0; i < 1000; ++i) {
    longest = std::max(longest, Next(line, "a", absl::Seconds(1), 1, kStart));
  }
  EXPECT_EQ(longest, ReturnLine::kLongest);
  EXPECT_EQ(Next(line, "b", absl::InfiniteDuration(), 1, kStart), ReturnLine::kLongest);
}

// One client is refused again and again, without waiting for its time.
TEST_F(ReturnLineTest, AClientKeepsOthersBackByOneQueueAtMost) {
  ReturnLine line(4);
  absl::Time now = kStart;
  for (int i = 0; i < 2000; ++i) {
    Next(line, "greedy", absl::Seconds(1), 0.5, now);
    now += absl::Milliseconds(10);
    if (i % 100 != 99) continue;
    // The room, a queue of the greedy one's, one of its requests, and half of it all.
    EXPECT_LE(Next(line, absl::StrCat("other", i), absl::Seconds(1), 0, now), absl::Seconds(8.25));
  }
  EXPECT_GT(Next(line, "greedy", absl::Seconds(1), 0.5, now), absl::Seconds(30));
}

TEST_F(ReturnLineTest, ClientsAreForgotten) {
  ReturnLine line(4);
  for (int i = 0; i < 20000; ++i) {
    Next(line, absl::StrCat(i), absl::Seconds(1), 0.001, kStart + i * absl::Milliseconds(1));
    ASSERT_LE(line.remembered(), 2 * ReturnLine::kMost);
  }
}

// Clients that come together and obey are refused once, though their requests take up to two
// fifths longer than predicted.
TEST_F(ReturnLineTest, AHerdThatObeysIsServed) {
  for (const double error : {1.0, 1.2, 1.4}) {
    const double limit = 1;
    ReturnLine line(limit);
    struct Arrival {
      double at;
      int tries;
      bool operator>(const Arrival& other) const { return at > other.at; }
    };
    std::vector<Arrival> arrivals;
    std::mt19937 random(7);
    for (int i = 0; i < 24; ++i) {
      arrivals.push_back({std::uniform_real_distribution(0.0, 0.05)(random), 0});
    }
    double waiting = 0, now = 0;  // Predicted seconds that wait.
    int most = 0;
    while (!arrivals.empty()) {
      std::make_heap(arrivals.begin(), arrivals.end(), std::greater<>());
      std::pop_heap(arrivals.begin(), arrivals.end(), std::greater<>());
      Arrival next = arrivals.back();
      arrivals.pop_back();
      waiting = std::max(0.0, waiting - (next.at - now) / error);
      now = next.at;
      const double seconds = 0.45;
      if (waiting == 0 || waiting + seconds <= limit) {
        waiting += seconds;
        continue;
      }
      most = std::max(most, ++next.tries);
      next.at += absl::ToDoubleSeconds(Next(line, "herd", absl::Seconds(waiting + seconds - limit),
                                            seconds, kStart + absl::Seconds(now)));
      arrivals.push_back(next);
    }
    EXPECT_EQ(most, 1) << error;
  }
}

}  // namespace
}  // namespace longview::server
