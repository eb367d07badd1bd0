// Descriptions of server and models as clients get them; loading and unloading.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/server/api/infer_helpers.h"

namespace longview::testing {
namespace {

using server::ModelState;

TEST(Models, GetAndList) {
  Backend backend;
  backend.store.AddUnloaded("broken", ModelState::kUnavailable, "model.safetensors is missing");
  const auto list = backend.api.ListModels();
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->models_size(), 2);
  EXPECT_EQ(list->models(0).state(), "UNAVAILABLE");
  EXPECT_EQ(list->models(0).reason(), "model.safetensors is missing");
  longview::v1::GetModelRequest request;
  request.set_model("one");
  const auto model = backend.api.GetModel(request);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->state(), "READY");
  EXPECT_EQ(model->task(), "text-classification");
  EXPECT_EQ(model->family(), "fake");
  EXPECT_EQ(model->max_tokens(), 4096);
  EXPECT_EQ(model->labels_size(), 3);
  EXPECT_EQ(model->parameters(), 1000);
  request.set_version("2");
  EXPECT_EQ(backend.api.GetModel(request).status().code(), absl::StatusCode::kNotFound);
  request.set_model("other");
  const absl::Status unknown = backend.api.GetModel(request).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(unknown.message()).find("broken, one"), std::string::npos) << unknown;
}

TEST(Models, Metadata) {
  Backend backend;
  const auto metadata = backend.api.ModelMetadata("one", "");
  ASSERT_TRUE(metadata.ok());
  EXPECT_EQ(metadata->versions_size(), 1);
  EXPECT_EQ(metadata->inputs(0).name(), "text");
  EXPECT_EQ(metadata->inputs(0).datatype(), "BYTES");
  EXPECT_EQ(metadata->outputs(0).name(), "logits");
  EXPECT_EQ(metadata->outputs(0).shape(0), -1);
  EXPECT_EQ(metadata->outputs(0).shape(1), 3);
  const auto& properties = metadata->properties();
  for (const char* name : {"task", "tasks", "family", "dtype", "device", "parameters", "max_tokens",
                           "max_pixels", "max_items"}) {
    EXPECT_TRUE(properties.contains(name)) << name;
  }
  EXPECT_EQ(properties.at("max_tokens"), "4096");
  EXPECT_EQ(properties.at("parameters"), "1000");
  EXPECT_EQ(backend.api.ModelMetadata("two", "").status().code(), absl::StatusCode::kNotFound);
}

TEST(Models, Config) {
  Backend backend;
  const auto response = backend.api.ModelConfig("one", "1");
  ASSERT_TRUE(response.ok());
  const inference::ModelConfig& config = response->config();
  EXPECT_EQ(config.backend(), "longview");
  EXPECT_EQ(config.max_batch_size(), 0);
  EXPECT_FALSE(config.model_transaction_policy().decoupled());
  ASSERT_GT(config.input_size(), 0);
  for (const auto& input : config.input()) EXPECT_TRUE(input.optional()) << input.name();
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_STRING);
  EXPECT_EQ(config.output(0).data_type(), inference::TYPE_FP32);
  EXPECT_EQ(config.parameters().at("max_tokens").string_value(), "4096");
}

TEST(Models, ServerMetadata) {
  server::ApiOptions options;
  options.version = "1.2.3";
  Backend backend(options);
  const auto metadata = backend.api.ServerMetadata();
  EXPECT_EQ(metadata.name(), "longview");
  EXPECT_EQ(metadata.version(), "1.2.3");
  EXPECT_EQ((std::vector<std::string>(metadata.extensions().begin(), metadata.extensions().end())),
            (std::vector<std::string>{"binary_tensor_data", "model_configuration",
                                      "model_repository", "parameters", "statistics"}));
}

TEST(Models, Readiness) {
  Backend backend;
  backend.store.AddUnloaded("soon", ModelState::kLoading, "");
  EXPECT_TRUE(backend.api.ModelReady("one", "").value());
  EXPECT_FALSE(backend.api.ModelReady("soon", "").value());
  EXPECT_EQ(backend.api.ModelReady("x", "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(backend.api.ServerReady());
  backend.lifecycle.set_phase(server::Lifecycle::Phase::kDraining);
  EXPECT_FALSE(backend.api.ServerReady());
  EXPECT_TRUE(backend.api.ServerLive());
  backend.lifecycle.set_phase(server::Lifecycle::Phase::kServing);
  EXPECT_TRUE(backend.api.ServerReady());
  backend.LoseDevice();  // The last of its kind.
  EXPECT_FALSE(backend.api.ServerReady());
  EXPECT_FALSE(backend.api.ServerLive());
}

TEST(Models, Statistics) {
  server::EngineOptions one_by_one = TestEngineOptions();
  one_by_one.scheduler.max_batch_items = 1;
  Backend backend({}, {}, one_by_one);
  const std::string good = R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [2]
      contents { bytes_contents: ["a", "b"] } })";
  ASSERT_TRUE(Infer(backend, good).ok());
  ASSERT_FALSE(Infer(backend, R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
      shape: [1] contents { bytes_contents: "!prepare" } })")
                   .ok());
  const auto response = backend.api.ModelStatistics("one", "");
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(response->model_stats_size(), 1);
  const auto& stats = response->model_stats(0);
  EXPECT_EQ(stats.inference_count(), 2u);
  EXPECT_EQ(stats.execution_count(), 2u);
  EXPECT_EQ(stats.inference_stats().success().count(), 2u);
  EXPECT_EQ(stats.inference_stats().fail().count(), 1u);
  EXPECT_GT(stats.last_inference(), 0u);
  EXPECT_EQ(backend.api.ModelStatistics("", "")->model_stats_size(), 1);
  EXPECT_FALSE(backend.api.ModelStatistics("x", "").ok());
}

TEST(Models, StatisticsAddUpWhatTheAnswersTell) {
  Backend backend;
  FakeOptions options;
  options.layer_item_time = absl::Milliseconds(10);
  backend.store.Add("sleeps", options);
  double queued = 0, computed = 0;
  for (int i = 0; i < 3; ++i) {
    const auto response = Infer(backend, R"(model_name: "sleeps" inputs { name: "text"
        datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } })");
    ASSERT_TRUE(response.ok()) << response.status();
    queued += 1e3 * static_cast<double>(response->parameters().at("queue_us").int64_param());
    computed += 1e3 * static_cast<double>(response->parameters().at("compute_us").int64_param());
  }
  const auto response = backend.api.ModelStatistics("sleeps", "");
  ASSERT_TRUE(response.ok());
  const auto& stats = response->model_stats(0).inference_stats();
  EXPECT_GE(computed, 30e6);
  EXPECT_EQ(stats.compute_infer().count(), 3u);
  EXPECT_NEAR(static_cast<double>(stats.compute_infer().ns()), computed, 3e3);  // 1 us for each.
  EXPECT_NEAR(static_cast<double>(stats.queue().ns()), queued, 3e3);
  EXPECT_GE(stats.success().ns(), stats.compute_infer().ns() + stats.queue().ns());
}

TEST(Models, RepositoryIndex) {
  Backend backend;
  backend.store.AddUnloaded("off", ModelState::kUnavailable, "unloaded");
  const auto all = backend.api.RepositoryIndex(false);
  ASSERT_EQ(all.models_size(), 2);
  EXPECT_EQ(all.models(0).state(), "UNAVAILABLE");
  EXPECT_EQ(all.models(1).state(), "READY");
  EXPECT_EQ(backend.api.RepositoryIndex(true).models_size(), 1);
}

template <typename Request, typename Response>
absl::Status Repository(Backend& backend,
                        void (server::Api::*call)(const server::CallInfo&, const Request&,
                                                  server::Reply<Response>),
                        const std::string& text) {
  Request request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  Waiter<Response> waiter;
  (backend.api.*call)(server::CallInfo(), request, waiter.reply());
  return waiter.Get().status();
}

TEST(Models, LoadAndUnload) {
  Backend backend;
  backend.store.AddUnloaded("off", ModelState::kUnavailable, "unloaded");
  const auto load = &server::Api::RepositoryModelLoad;
  const auto unload = &server::Api::RepositoryModelUnload;
  EXPECT_TRUE(Repository(backend, load, R"(model_name: "off")").ok());
  EXPECT_TRUE(backend.api.ModelReady("off", "").value());
  EXPECT_TRUE(Repository(backend, unload, R"(model_name: "off" parameters {
      key: "unload_dependents" value { bool_param: true } })")
                  .ok());
  EXPECT_FALSE(backend.api.ModelReady("off", "").value());
  EXPECT_EQ(Repository(backend, load, R"(model_name: "x")").code(), absl::StatusCode::kNotFound);
  for (const char* bad : {
           R"(model_name: "off" parameters { key: "config" value { string_param: "{}" } })",
           R"(model_name: "off" parameters { key: "file:1/m" value { bytes_param: "x" } })",
           R"(model_name: "off" parameters { key: "what" value { int64_param: 1 } })",
           R"(model_name: "off" repository_name: "other")",
           R"(model_name: "")",
       }) {
    EXPECT_EQ(Repository(backend, load, bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Models, ControlCanBeOff) {
  server::ApiOptions options;
  options.allow_model_control = false;
  Backend backend(options);
  EXPECT_EQ(Repository(backend, &server::Api::RepositoryModelUnload, R"(model_name: "one")").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Repository(backend, &server::Api::LoadModel, R"(model: "one")").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(backend.api.ModelReady("one", "").value());
}

TEST(Models, TypedLoadDescribesTheModel) {
  Backend backend;
  longview::v1::UnloadModelRequest request;
  request.set_model("one");
  Waiter<longview::v1::Model> waiter;
  backend.api.UnloadModel({}, request, waiter.reply());
  const auto model = waiter.Get();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name(), "one");
  EXPECT_EQ(model->state(), "UNAVAILABLE");
}

}  // namespace
}  // namespace longview::testing
