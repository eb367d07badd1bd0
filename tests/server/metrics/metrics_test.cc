// The names, labels and texts users see on /metrics.
#include "server/metrics/metrics.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longview::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ModelLabels kModel{"pages", "1"};

class MetricsTest : public ::testing::Test {
 protected:
  Metrics metrics_{"1.2.3", "abc", "cpu"};
};

// The value of the one series whose line starts with `series`; -1 if there is none.
double Value(const std::string& text, const std::string& series) {
  const size_t at = text.find("\n" + series + " ");
  if (at == std::string::npos) return -1;
  return std::atof(text.c_str() + at + series.size() + 2);
}

TEST_F(MetricsTest, WhatLeavesBesideAnswersIsCounted) {
  ExportCounts counts;
  metrics_.SetExportCounts([&counts] { return counts; });
  EXPECT_EQ(Value("\n" + metrics_.Serialize(), "longview_log_lines_dropped_total"), 0);
  counts = {.dropped_log_lines = 3, .exported_spans = 20, .dropped_spans = 5};
  const std::string text = "\n" + metrics_.Serialize();
  EXPECT_EQ(Value(text, "longview_log_lines_dropped_total"), 3);
  EXPECT_EQ(Value(text, "longview_spans_exported_total"), 20);
  EXPECT_EQ(Value(text, "longview_spans_dropped_total"), 5);
  EXPECT_EQ(Value("\n" + metrics_.Serialize(), "longview_spans_exported_total"), 20);
}

// Before any model is loaded: the names of the API page with help and type.
TEST_F(MetricsTest, EveryFamilyIsDescribedFromTheStart) {
  const std::string text = "\n" + metrics_.Serialize();
  const auto expect = [&](const char* type, const std::vector<const char*>& names) {
    for (const char* name : names) {
      EXPECT_THAT(text, HasSubstr("\n# HELP longview_" + std::string(name) + " "));
      EXPECT_THAT(text, HasSubstr("\n# TYPE longview_" + std::string(name) + " " + type + "\n"));
    }
  };
  expect("histogram",
         {"request_duration_seconds", "queue_duration_seconds", "compute_duration_seconds",
          "batch_tokens", "batch_items", "time_to_first_token_seconds",
          "inter_token_latency_seconds", "predicted_vs_actual_ratio"});
  expect("gauge",
         {"queued_requests", "running_requests", "queued_work_seconds", "generation_cache_bytes",
          "generation_cache_kept_bytes", "generation_cache_usage_ratio", "model_memory_bytes",
          "model_load_seconds", "model_ready", "padding_ratio", "build_info", "image_plan_bytes"});
  expect("counter",
         {"tokens_total", "images_total", "pixels_total", "rejected_total", "cancelled_total",
          "wasted_tokens_total", "truncated_requests_total", "truncated_tokens_total"});
}

TEST_F(MetricsTest, EveryFamilyHasOneDescriptionAfterLoad) {
  metrics_.ModelLoaded(kModel, 1000, 2.5);
  const std::string text = metrics_.Serialize();
  const std::string help = "# HELP longview_queued_requests ";
  const size_t at = text.find(help);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.find(help, at + 1), std::string::npos);
}

TEST_F(MetricsTest, EveryFamilyOfAModelExistsAtZeroFromLoad) {
  metrics_.ModelLoaded(kModel, 1000, 2.5);
  const std::string text = metrics_.Serialize();
  const std::string labels = "{model=\"pages\",version=\"1\"}";
  for (const char* name :
       {"queue_duration_seconds_count", "batch_tokens_count", "batch_items_count",
        "time_to_first_token_seconds_count", "inter_token_latency_seconds_count",
        "predicted_vs_actual_ratio_count", "queued_requests", "running_requests",
        "queued_work_seconds", "generation_cache_bytes", "generation_cache_kept_bytes",
        "generation_cache_usage_ratio", "padding_ratio", "images_total", "pixels_total",
        "image_plan_bytes"}) {
    EXPECT_EQ(Value(text, "longview_" + std::string(name) + labels), 0) << name;
  }
  EXPECT_EQ(Value(text, "longview_model_memory_bytes" + labels), 1000);
  EXPECT_EQ(Value(text, "longview_model_load_seconds" + labels), 2.5);
  EXPECT_EQ(Value(text, "longview_model_ready" + labels), 1);
}

TEST_F(MetricsTest, AnIdleModelHasFewSeries) {
  const auto lines = [this](const std::string& part) {
    const std::string text = metrics_.Serialize();
    int count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  metrics_.ModelLoaded(kModel, 1000, 2.5);
  EXPECT_LE(lines("model=\"pages\""), 80);
  EXPECT_EQ(lines("_bucket"), 0);
  metrics_.Queued(kModel, 0.3);
  EXPECT_EQ(lines("longview_queue_duration_seconds_bucket"), 18) << "all, so that rates agree";
  EXPECT_EQ(lines("_bucket"), 18);
}

TEST_F(MetricsTest, EveryLabelValueExistsAtZeroFromLoad) {
  metrics_.ModelLoaded(kModel, 0, 0);
  const std::string text = metrics_.Serialize();
  const auto expect_zero = [&](const std::string& name, const std::string& before,
                               const std::string& after) {
    const std::string series = "longview_" + name + "{" + before + after + "}";
    EXPECT_EQ(Value(text, series), 0) << series;
  };
  const std::string model = "model=\"pages\",";
  const std::string version = "version=\"1\"";
  for (const char* phase : {"preprocess", "forward", "prefill", "decode", "postprocess"}) {
    expect_zero("compute_duration_seconds_count", model + "phase=\"" + phase + "\",", version);
  }
  for (const char* kind : {"prompt", "cached", "generated"}) {
    expect_zero("tokens_total", "kind=\"" + std::string(kind) + "\"," + model, version);
  }
  for (const char* reason : {"queue", "memory", "deadline", "draining"}) {
    expect_zero("rejected_total", model + "reason=\"" + reason + "\",", version);
  }
  for (const char* stage : {"queued", "running"}) {
    expect_zero("cancelled_total", model + "stage=\"" + stage + "\",", version);
  }
  EXPECT_EQ(Value(text, "longview_rejected_total{reason=\"auth\"}"), 0);
  EXPECT_THAT(text, HasSubstr("longview_request_duration_seconds_count{api=\"grpc\",code=\"OK\","
                              "method=\"ModelInfer\",model=\"pages\",version=\"1\"} 0\n"));
}

TEST_F(MetricsTest, CountsWhatItIsTold) {
  metrics_.ModelLoaded(kModel, 0, 0);
  metrics_.Batch(kModel, 3, 5000, 0.2, 0.1);
  metrics_.Tokens(kModel, "prompt", 5000);
  metrics_.Rejected(kModel, RejectReason::kQueue);
  metrics_.Rejected(kModel, RejectReason::kAuth);
  metrics_.Cancelled(kModel, CancelStage::kRunning);
  metrics_.Computed(kModel, Phase::kForward, 0.0007);
  metrics_.WastedTokens(kModel, "cancelled", 12);
  const std::string text = metrics_.Serialize();
  const std::string labels = "model=\"pages\",version=\"1\"}";
  EXPECT_EQ(Value(text, "longview_batch_items_sum{" + labels), 3);
  EXPECT_EQ(Value(text, "longview_batch_tokens_sum{" + labels), 5000);
  EXPECT_EQ(Value(text, "longview_predicted_vs_actual_ratio_sum{" + labels), 2);
  EXPECT_EQ(Value(text, "longview_tokens_total{kind=\"prompt\"," + labels), 5000);
  EXPECT_EQ(Value(text, "longview_rejected_total{reason=\"auth\"}"), 1);
  EXPECT_THAT(text, HasSubstr("longview_rejected_total{model=\"pages\",reason=\"queue\","
                              "version=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("longview_cancelled_total{model=\"pages\",stage=\"running\","
                              "version=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("phase=\"forward\",version=\"1\",le=\"0.0005\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("phase=\"forward\",version=\"1\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("phase=\"forward\",version=\"1\",le=\"120\"} 1\n"));
}

TEST_F(MetricsTest, AnUnknownNameNeverBecomesALabel) {
  metrics_.RequestDone({"no-such-model", "7"}, "http", "/v1/classify", absl::StatusCode::kNotFound,
                       0.001);
  metrics_.Rejected({"no-such-model", "7"}, RejectReason::kDraining);
  metrics_.Queued({"no-such-model", "7"}, 1);
  metrics_.ModelUnloaded({"no-such-model", "7"});
  const std::string text = metrics_.Serialize();
  EXPECT_THAT(text, Not(HasSubstr("no-such-model")));
  EXPECT_THAT(text, HasSubstr("longview_request_duration_seconds_count{api=\"http\",code=\"NOT_"
                              "FOUND\",method=\"/v1/classify\",model=\"\",version=\"\"} 1\n"));
}

TEST_F(MetricsTest, GaugesAreReadAtScrapeTime) {
  metrics_.ModelLoaded(kModel, 0, 0);
  double queued = 3;
  metrics_.SetSchedulerGauges([&](const ModelLabels& model) {
    EXPECT_EQ(model.model, "pages");
    return SchedulerGauges{.queued_requests = queued, .queued_work_seconds = 0.5};
  });
  const std::string series = "longview_queued_requests{model=\"pages\",version=\"1\"}";
  EXPECT_EQ(Value(metrics_.Serialize(), series), 3);
  queued = 0;
  EXPECT_EQ(Value(metrics_.Serialize(), series), 0);
}

// Models that share a memory: each has its own bytes, and says how full the whole is.
TEST_F(MetricsTest, CacheBytesAreTheModelsOwnTheRatioThatOfAll) {
  const ModelLabels other{"other", "1"}, classifier{"classifier", "1"};
  for (const ModelLabels& model : {kModel, other, classifier}) metrics_.ModelLoaded(model, 0, 0);
  metrics_.SetCacheGauges([](const ModelLabels& model) -> std::optional<CacheGauges> {
    if (model.model == "classifier") return std::nullopt;
    const double used = model.model == "pages" ? 30 : 10;
    return CacheGauges{.used = used, .kept = 7, .used_by_all = 40, .capacity = 80};
  });
  const std::string text = metrics_.Serialize();
  const std::string pages = "{model=\"pages\",version=\"1\"}";
  const std::string others = "{model=\"other\",version=\"1\"}";
  EXPECT_EQ(Value(text, "longview_generation_cache_bytes" + pages), 30);
  EXPECT_EQ(Value(text, "longview_generation_cache_bytes" + others), 10);
  EXPECT_EQ(Value(text, "longview_generation_cache_kept_bytes" + others), 7);
  EXPECT_EQ(Value(text, "longview_generation_cache_usage_ratio" + pages), 0.5);
  EXPECT_EQ(Value(text, "longview_generation_cache_usage_ratio" + others), 0.5);
  EXPECT_EQ(Value(text, "longview_generation_cache_bytes{model=\"classifier\",version=\"1\"}"), 0);
}

TEST_F(MetricsTest, PlanBytesAreReadAtEveryScrape) {
  metrics_.ModelLoaded(kModel, 0, 0);
  double kept = 7;
  metrics_.SetPlanBytes([&kept](const ModelLabels&) { return kept; });
  const std::string series = "longview_image_plan_bytes{model=\"pages\",version=\"1\"}";
  EXPECT_EQ(Value(metrics_.Serialize(), series), 7);
  kept = 3;
  EXPECT_EQ(Value(metrics_.Serialize(), series), 3);
  metrics_.SetPlanBytes({});
  EXPECT_EQ(Value(metrics_.Serialize(), series), 0);
}

TEST_F(MetricsTest, UnloadAndReloadKeepTheCounts) {
  metrics_.ModelLoaded(kModel, 1000, 1);
  metrics_.Tokens(kModel, "prompt", 7);
  metrics_.ModelUnloaded(kModel);
  const std::string ready = "longview_model_ready{model=\"pages\",version=\"1\"}";
  EXPECT_EQ(Value(metrics_.Serialize(), ready), 0);
  metrics_.ModelLoaded(kModel, 1000, 1);
  const std::string text = metrics_.Serialize();
  EXPECT_EQ(Value(text, ready), 1);
  EXPECT_EQ(Value(text, "longview_tokens_total{kind=\"prompt\",model=\"pages\",version=\"1\"}"), 7);
}

TEST_F(MetricsTest, ProcessMetricsArePlausible) {
  const std::string text = metrics_.Serialize();
  EXPECT_GE(Value(text, "process_cpu_seconds_total"), 0);
  EXPECT_GT(Value(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_GE(Value(text, "process_open_fds"), 3);
  EXPECT_LE(Value(text, "process_start_time_seconds"), static_cast<double>(time(nullptr)) + 1);
  EXPECT_GT(Value(text, "process_start_time_seconds"), static_cast<double>(time(nullptr)) - 3600);
  EXPECT_THAT(text, HasSubstr("longview_build_info{commit=\"abc\",device=\"cpu\",version=\"1.2.3\"}"
                              " 1\n"));
}

TEST_F(MetricsTest, ThreadsMayCountWhileOthersScrape) {
  metrics_.ModelLoaded(kModel, 0, 0);
  constexpr int kThreads = 4;
  constexpr int kCalls = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        metrics_.RequestDone(kModel, "grpc", "Classify", absl::StatusCode::kOk, 0.01);
      }
    });
  }
  for (int i = 0; i < 10; ++i) metrics_.Serialize();
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(metrics_.Serialize(),
              HasSubstr("method=\"Classify\",model=\"pages\",version=\"1\"} " +
                        std::to_string(kThreads * kCalls) + "\n"));
}

TEST_F(MetricsTest, PassesPromtool) {
  if (access(LONGVIEW_PROMTOOL, X_OK) != 0) GTEST_SKIP() << "there is no " LONGVIEW_PROMTOOL;
  const auto check = [&] {
    FILE* promtool = popen(LONGVIEW_PROMTOOL " check metrics", "w");
    ASSERT_NE(promtool, nullptr);
    const std::string text = metrics_.Serialize();
    ASSERT_EQ(fwrite(text.data(), 1, text.size(), promtool), text.size());
    EXPECT_EQ(pclose(promtool), 0) << text;
  };
  check();
  metrics_.ModelLoaded(kModel, 1000, 1);
  metrics_.RequestDone(kModel, "http", "/v1/classify", absl::StatusCode::kOk, 0.01);
  check();
}

}  // namespace
}  // namespace longview::server
