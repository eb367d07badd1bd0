// Open-loop load: the plan, the clock, the report.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/cli/load_plan.h"
#include "client/cli/load_report.h"
#include "client/cli/load_run.h"

namespace longview::client {
namespace {

TEST(PoissonArrivals, HaveTheRateTheSpreadAndTheSeed) {
  const std::vector<Arrival> plan = PoissonArrivals(200, 50, 4, 7);
  ASSERT_EQ(plan.size(), 10000u);
  std::vector<int> picked(4);
  double gaps = 0, squares = 0, before = 0;
  for (const Arrival& arrival : plan) {
    const double gap = arrival.seconds - before;
    ASSERT_GE(gap, 0);
    gaps += gap;
    squares += gap * gap;
    before = arrival.seconds;
    ++picked[arrival.request];
  }
  const double n = static_cast<double>(plan.size());
  const double mean = gaps / n;
  EXPECT_NEAR((squares / n - mean * mean) / (mean * mean), 1.0, 0.1) << "exponential: cv = 1";
  for (const int count : picked) EXPECT_NEAR(count, n / 4, n / 20);
  EXPECT_LT(plan.back().seconds, 50);
  EXPECT_EQ(plan[5].seconds, PoissonArrivals(200, 50, 4, 7)[5].seconds);
  EXPECT_NE(plan[5].seconds, PoissonArrivals(200, 50, 4, 8)[5].seconds);
}

TEST(PoissonArrivals, AreAsManyAsPlannedWhateverTheSeed) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(PoissonArrivals(2, 6, 1, seed).size(), 12u) << seed;
    EXPECT_EQ(PoissonArrivals(0.25, 10, 1, seed).size(), 3u) << "2.5, rounded; " << seed;
    EXPECT_EQ(PoissonArrivals(0.1, 1, 1, seed).size(), 1u) << "a test sends something; " << seed;
  }
}

TEST(RandomTokens, LookLikeADocument) {
  const std::vector<int32_t> tokens = RandomTokens(100, 1);
  ASSERT_EQ(tokens.size(), 100u);
  EXPECT_EQ(tokens.front(), 0);
  EXPECT_EQ(tokens.back(), 2);
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    EXPECT_GE(tokens[i], 4);
    EXPECT_LT(tokens[i], 500);
  }
}

TEST(RunLoad, ALateServerDoesNotSlowTheArrivals) {
  const std::vector<Arrival> plan = {{0.00, 0}, {0.02, 1}, {0.04, 0}};
  std::vector<std::function<void(CallEnd)>> waiting;
  std::vector<int> requests;
  std::thread answer;
  double total = 0;
  const auto samples = RunLoad(
      plan,
      [&](int request, std::function<void(CallEnd)> done) {
        requests.push_back(request);
        waiting.push_back(std::move(done));
        if (waiting.size() < 3) return;
        answer = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          waiting[2](grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"));
          waiting[1](grpc::Status::OK);
          waiting[0](grpc::Status::OK);
        });
      },
      &total);
  answer.join();
  EXPECT_EQ(requests, (std::vector<int>{0, 1, 0}));
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_GE(samples[0].latency_seconds, 0.088) << "from its own planned time";
  EXPECT_GE(samples[2].latency_seconds, 0.048);
  EXPECT_GT(samples[0].latency_seconds, samples[2].latency_seconds);
  EXPECT_EQ(samples[2].code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_GE(total, samples[0].latency_seconds);
}

TEST(RunLoad, AStreamsPiecesAreTimedFromThePlannedStart) {
  using std::chrono::milliseconds;
  const auto samples = [] {
    double total = 0;
    return RunLoad(
        {{0.01, 0}},
        [](int, std::function<void(CallEnd)> done) {
          CallEnd end(grpc::Status::OK);
          const auto now = std::chrono::steady_clock::now();
          end.pieces = {now + milliseconds(30), now + milliseconds(35), now + milliseconds(55)};
          done(std::move(end));
        },
        &total);
  }();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_GE(samples[0].first_piece_seconds, 0.030);
  ASSERT_EQ(samples[0].gap_seconds.size(), 2u);
  EXPECT_NEAR(samples[0].gap_seconds[0], 0.005, 1e-9);
  EXPECT_NEAR(samples[0].gap_seconds[1], 0.020, 1e-9);
}

TEST(Percentile, IsTheNearestRank) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(Percentile(values, 50), 5);
  EXPECT_EQ(Percentile(values, 91), 10);
  EXPECT_EQ(Percentile(values, 100), 10);
  EXPECT_EQ(Percentile({3}, 1), 3);
}

TEST(LoadReport, HasGhzFieldsInNanoseconds) {
  LoadRun run;
  run.call = "p.S.M";
  run.total_seconds = 2;
  for (int i = 1; i <= 10; ++i) run.samples.push_back({i * 1e-3, grpc::StatusCode::OK, ""});
  run.samples.push_back({9.0, grpc::StatusCode::RESOURCE_EXHAUSTED, "full"});
  const nlohmann::json json = nlohmann::json::parse(LoadReportJson(run));
  EXPECT_EQ(json["count"], 11);
  EXPECT_EQ(json["total"], 2000000000);
  EXPECT_EQ(json["average"], 5500000);
  EXPECT_EQ(json["fastest"], 1000000);
  EXPECT_EQ(json["slowest"], 10000000) << "failed calls have no latency";
  EXPECT_DOUBLE_EQ(json["rps"], 5.5);
  EXPECT_EQ(json["statusCodeDistribution"]["OK"], 10);
  EXPECT_EQ(json["statusCodeDistribution"]["ResourceExhausted"], 1);
  EXPECT_EQ(json["errorDistribution"]["rpc error: code = ResourceExhausted desc = full"], 1);
  EXPECT_EQ(json["latencyDistribution"][2]["percentage"], 50);
  EXPECT_EQ(json["latencyDistribution"][2]["latency"], 5000000);
  int counted = 0;
  for (const auto& bucket : json["histogram"]) counted += bucket["count"].get<int>();
  EXPECT_EQ(counted, 10);
}

TEST(LoadReport, StreamsHaveFirstTokensAndGaps) {
  LoadRun run;
  for (int i = 1; i <= 4; ++i) {
    run.samples.push_back({i * 1e-1, grpc::StatusCode::OK, "", i * 1e-3, {2e-3, 4e-3}});
  }
  run.samples.push_back({1, grpc::StatusCode::UNAVAILABLE, "gone", 0.5, {0.25}});
  const nlohmann::json json = nlohmann::json::parse(LoadReportJson(run));
  EXPECT_EQ(json["timeToFirstToken"]["count"], 4) << "answered streams only";
  EXPECT_EQ(json["timeToFirstToken"]["slowest"], 4000000);
  EXPECT_EQ(json["tokenGap"]["count"], 8);
  EXPECT_EQ(json["tokenGap"]["average"], 3000000);
  EXPECT_EQ(json["tokenGap"]["latencyDistribution"][6]["latency"], 4000000);
  EXPECT_NE(LoadReportText(run).find("token gap ms: average 3.00"), std::string::npos);
}

TEST(LoadReport, AllFailedHasNoLatencies) {
  LoadRun run;
  run.samples.push_back({1.0, grpc::StatusCode::UNAVAILABLE, "gone"});
  const nlohmann::json json = nlohmann::json::parse(LoadReportJson(run));
  EXPECT_TRUE(json["latencyDistribution"].empty());
  EXPECT_EQ(json["average"], 0);
  EXPECT_NE(LoadReportText(run).find("Unavailable: 1"), std::string::npos);
}

}  // namespace
}  // namespace longview::client
