#include "server/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/flags/reflection.h"

namespace longview::server {
namespace {

using ::testing::HasSubstr;

// Flags are process-wide: each test starts from the defaults and leaves them so.
class ConfigTest : public ::testing::Test {
 protected:
  absl::StatusOr<Config> Load(std::vector<std::string> arguments,
                              std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), "longview-server");
    return LoadConfig(static_cast<int>(arguments.size()), Pointers(arguments).data(),
                      Pointers(environment).data());
  }

  std::string WriteFile(std::string_view text) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "longview_config_test.json";
    std::ofstream(path) << text;
    return path.string();
  }

 private:
  std::vector<char*>& Pointers(std::vector<std::string>& strings) {
    auto& pointers = storage_.emplace_back();
    for (std::string& text : strings) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  absl::FlagSaver saver_;
  std::list<std::vector<char*>> storage_;
};

TEST_F(ConfigTest, Defaults) {
  const auto config = Load({"/some/model"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->grpc_port, 9000);
  EXPECT_EQ(config->http_port, 8080);
  EXPECT_EQ(config->host, "127.0.0.1");
  EXPECT_EQ(config->max_message_bytes, 64u << 20);
  EXPECT_EQ(config->max_image_pixels, 1u << 26);
  EXPECT_EQ(config->max_queue_seconds, 30);
  EXPECT_EQ(config->nested_share, 0.14);
  EXPECT_EQ(config->drain_seconds, 10);
  EXPECT_EQ(config->shutdown_seconds, 60);
  EXPECT_EQ(config->max_connection_age_seconds, 600);
  EXPECT_EQ(config->default_timeout_seconds, 600);
  EXPECT_EQ(config->max_timeout_seconds, 3600);
  EXPECT_TRUE(config->allow_model_control);
  EXPECT_GE(config->threads, 1);
  EXPECT_GT(config->cache_bytes, 0u);
  EXPECT_THAT(config->models, ::testing::ElementsAre("/some/model"));
}

TEST_F(ConfigTest, QuantizingIsAModeWithItsOwnFlags) {
  const auto config = Load({"--quantize=dir", "--texts=a.txt", "--pictures=b", "--dry_run"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->mode, Mode::kQuantize);
  EXPECT_EQ(config->quantize_directory, "dir");
  EXPECT_EQ(config->texts, "a.txt");
  EXPECT_EQ(config->pictures, "b");
  EXPECT_TRUE(config->dry_run);
}

TEST_F(ConfigTest, ServerNamesAreHostNames) {
  EXPECT_THAT(Load({"m", "--server_names=a.example, b"})->server_names,
              ::testing::ElementsAre("a.example", "b"));
  EXPECT_THAT(std::string(Load({"m", "--server_names=a:80"}).status().message()),
              HasSubstr("--server_names: 'a:80'"));
}

TEST_F(ConfigTest, PageOriginsAreAsBrowsersWriteThem) {
  EXPECT_THAT(Load({"m"})->cors_origins, ::testing::ElementsAre());
  EXPECT_THAT(Load({"m", "--cors_origins=*"})->cors_origins, ::testing::ElementsAre("*"));
  EXPECT_THAT(Load({"m", "--cors_origins=https://A.example:443, http://localhost:3000,app://x"})
                  ->cors_origins,
              ::testing::ElementsAre("https://a.example", "http://localhost:3000", "app://x"));
  for (const char* bad : {"a.example", "https://a.example/", "https://", "://a", "null",
                          "https://*.example", "https://a,*"}) {
    const auto config = Load({"m", std::string("--cors_origins=") + bad});
    EXPECT_THAT(std::string(config.status().message()), HasSubstr("flag --cors_origins: '")) << bad;
  }
}

TEST_F(ConfigTest, ConnectionsAreCounts) {
  EXPECT_EQ(Load({"m"})->max_connections, 0);
  EXPECT_EQ(Load({"m", "--max_connections=70"})->max_connections, 70);
  EXPECT_EQ(Load({"m", "--max_connections_per_address=7"})->max_connections_per_address, 7);
  EXPECT_THAT(std::string(Load({"m", "--max_connections=-1"}).status().message()),
              HasSubstr("--max_connections: '-1'"));
}

TEST_F(ConfigTest, FlagBeatsEnvironmentBeatsFile) {
  const std::string file =
      WriteFile(R"({"grpc_port": 1001, "http_port": 1002, "threads": 3, "models": ["a", "b"]})");
  const auto config = Load({"--config", file, "--grpc-port=3001"},
                           {"LONGVIEW_HTTP_PORT=2002", "LONGVIEW_GRPC_PORT=2001"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->grpc_port, 3001);
  EXPECT_EQ(config->http_port, 2002);
  EXPECT_EQ(config->threads, 3);
  EXPECT_THAT(config->models, ::testing::ElementsAre("a", "b"));
}

TEST_F(ConfigTest, PositionalPathsAreLikeTheFlag) {
  EXPECT_THAT(Load({"a=/x,b=/y", "/z"})->models, ::testing::ElementsAre("a=/x", "b=/y", "/z"));
  EXPECT_THAT(Load({"--models=a=/x,b=/y"})->models, ::testing::ElementsAre("a=/x", "b=/y"));
}

TEST_F(ConfigTest, HalvesAreForDevices) {
  EXPECT_EQ(Load({"m", "--dtype=fp16", "--device=cuda"})->dtype, "fp16");
  EXPECT_EQ(Load({"m", "--dtype=fp16", "--device=cuda:0,cuda:1"})->dtype, "fp16");
  EXPECT_FALSE(Load({"m", "--dtype=fp16", "--device=auto"}).ok());
}

TEST_F(ConfigTest, KubernetesServiceVariablesAreIgnoredWithOneWarning) {
  const auto config = Load({"m"}, {"LONGVIEW_HTTP_PORT=tcp://10.0.0.1:8080",
                                   "LONGVIEW_SERVICE_HOST=10.0.0.1", "LONGVIEW_MODEL=/m"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->http_port, 8080);
  ASSERT_EQ(config->warnings.size(), 1u);
  EXPECT_THAT(config->warnings[0], HasSubstr("LONGVIEW_HTTP_PORT"));
  EXPECT_THAT(config->warnings[0], HasSubstr("LONGVIEW_SERVICE_HOST"));
  EXPECT_THAT(config->warnings[0], HasSubstr("LONGVIEW_MODEL"));
}

TEST_F(ConfigTest, VariablesOfTheProjectsOtherProgramsAreNoMistakes) {
  const auto config = Load({"m"}, {"LONGVIEW_SERVER=localhost:9000", "LONGVIEW_API_KEY=secret",
                                   "LONGVIEW_PREFIX=/opt/longview", "LONGVIEW_BUILD=/b"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings, ::testing::IsEmpty());
}

TEST_F(ConfigTest, StrictIsAsked) {
  EXPECT_FALSE(Load({"m"})->strict);
  EXPECT_TRUE(Load({"m", "--strict"})->strict);
  EXPECT_TRUE(Load({"m"}, {"LONGVIEW_STRICT=true"})->strict);
}

TEST_F(ConfigTest, ModelControlFollowsTheHost) {
  EXPECT_TRUE(Load({"m", "--host=localhost"})->allow_model_control);
  EXPECT_FALSE(Load({"m", "--host=0.0.0.0"})->allow_model_control);
  EXPECT_TRUE(Load({"m", "--host=0.0.0.0", "--allow_model_control"})->allow_model_control);
  EXPECT_FALSE(Load({"m", "--host=localhost", "--noallow_model_control"})->allow_model_control);
}

TEST_F(ConfigTest, ModelControlIsOnWithKeysUnlessSaidOtherwise) {
  EXPECT_TRUE(Load({"m", "--host=0.0.0.0", "--api_keys_file=/k"})->allow_model_control);
  EXPECT_FALSE(Load({"m", "--host=0.0.0.0", "--api_keys_file=/k", "--noallow_model_control"})
                   ->allow_model_control);
}

TEST_F(ConfigTest, KeysCertificatesAndTheAdminPort) {
  const auto plain = Load({"m"});
  EXPECT_EQ(plain->admin_port, -1);
  EXPECT_EQ(plain->tls_cert + plain->tls_key + plain->tls_client_ca + plain->api_keys_file, "");
  const auto config = Load({"m", "--tls_cert=/c", "--tls-key=/k", "--tls_client_ca=/a",
                            "--api_keys_file=/keys", "--admin_port=9001"});
  ASSERT_TRUE(config.ok()) << config.status();
  const auto json = nlohmann::json::parse(ConfigJson(*config));
  EXPECT_EQ(json["tls_cert"], "/c");
  EXPECT_EQ(json["tls_key"], "/k");
  EXPECT_EQ(json["tls_client_ca"], "/a");
  EXPECT_EQ(json["api_keys_file"], "/keys");
  EXPECT_EQ(json["admin_port"], 9001);
}

TEST_F(ConfigTest, CollectorsAreHostAndPort) {
  for (const char* endpoint : {"", "collector:4317", "[::1]:4317", "http://127.0.0.1:4317",
                               "https://collector.example:443"}) {
    const auto config = Load({"--otlp_endpoint", endpoint, "/m"});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->otlp_endpoint, endpoint);
    EXPECT_EQ(config->trace_sample_ratio, 1);
  }
}

TEST_F(ConfigTest, TheLogLevelOfTheFileIsReadAgain) {
  const std::string file = WriteFile(R"({"log_level": "warning"})");
  const auto config = Load({"--config", file, "--log_level=error", "/m"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->config_file, file);
  EXPECT_EQ(config->log_level, LogLevel::kError);
  EXPECT_EQ(*ReadLogLevel(file), LogLevel::kWarning);
  WriteFile(R"({"threads": 1, "log_level": "debug"})");
  EXPECT_EQ(*ReadLogLevel(file), LogLevel::kDebug);
  WriteFile("{}");
  EXPECT_EQ(*ReadLogLevel(file), std::nullopt);
  WriteFile(R"({"log_level": "loud"})");
  EXPECT_THAT(std::string(ReadLogLevel(file).status().message()), HasSubstr("loud"));
  WriteFile("{");
  EXPECT_THAT(std::string(ReadLogLevel(file).status().message()), HasSubstr(file));
}

TEST_F(ConfigTest, PrintedConfigurationIsJsonOfTheSameNames) {
  const auto config = Load({"m", "--max_message_bytes=1MiB", "--cache-bytes", "2GiB"});
  ASSERT_TRUE(config.ok()) << config.status();
  const auto json = nlohmann::json::parse(ConfigJson(*config));
  EXPECT_EQ(json["max_message_bytes"], 1 << 20);
  EXPECT_EQ(json["cache_bytes"], int64_t{2} << 30);
  EXPECT_EQ(json["models"], nlohmann::json::array({"m"}));
}

struct BadCase {
  std::vector<std::string> arguments;
  std::string message;
};

class BadConfigTest : public ConfigTest, public ::testing::WithParamInterface<BadCase> {};

TEST_P(BadConfigTest, NamesFlagAndValue) {
  const auto config = Load(GetParam().arguments);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadConfigTest,
    ::testing::Values(
        BadCase{{"--grpc_prot=1"}, "unknown flag '--grpc_prot=1'"},
        BadCase{{"m", "--grpc_port=x"}, "'x' is not a value for grpc_port"},
        BadCase{{"m", "--grpc_port"}, "needs a value"},
        BadCase{{"m", "--grpc_port=70000"}, "'70000' must be from -1 to 65535"},
        BadCase{{"m", "--grpc_port=81", "--http_port=81"}, "another port"},
        BadCase{{"m", "--grpc_port=-1", "--http_port=-1"}, "must be on"},
        BadCase{{"m", "--tls_cert=/c"}, "--tls_key: '' must be given with --tls_cert"},
        BadCase{{"m", "--tls_key=/k"}, "--tls_cert: '' must be given with --tls_key"},
        BadCase{{"m", "--tls_client_ca=/a"}, "given with --tls_cert and --tls_key"},
        BadCase{{"m", "--admin_port=9000"}, "another port than --grpc_port"},
        BadCase{{"m", "--admin_port=-2"}, "'-2' must be from -1 to 65535"},
        BadCase{{"m", "--dtype=int4"}, "'int4' must be auto, fp32, bf16, fp16 or int8"},
        BadCase{{"m", "--device=tpu"}, "'tpu' must be auto, cpu, cuda"},
        BadCase{{"m", "--device=cuda:"}, "'cuda:' must be auto, cpu, cuda"},
        BadCase{{"m", "--device=cuda:0,cpu"}, "such as cuda:0,cuda:1"},
        BadCase{{"m", "--dtype=fp16"}, "without --device=cuda"},
        BadCase{{"m", "--threads=0"}, "'0' must be from 1 to 1024"},
        BadCase{{"m", "--max_message_bytes=1MB"}, "'1MB' is not a byte count"},
        BadCase{{"m", "--max_message_bytes=4GiB"}, "must be from 1024"},
        BadCase{{"m", "--cache_bytes=200%"}, "percentage"},
        BadCase{{"m", "--max_queue_seconds=nan"}, "max_queue_seconds"},
        BadCase{{"m", "--nested_share=1.5"}, "'1.5' must be from 0 to 1"},
        BadCase{{"m", "--drain_seconds=-1"}, "drain_seconds"},
        BadCase{{"--quantize=m"}, "flag --texts: ''"},
        BadCase{{"--quantize=m", "--texts=a", "--device=cuda"}, "'cuda' must be cpu"},
        BadCase{{"m", "--dry_run"}, "mean nothing without --quantize"},
        BadCase{{"m", "--otlp_endpoint=collector"}, "'collector' must be host:port"},
        BadCase{{"m", "--otlp_endpoint=c:1/v1/traces"}, "must be host:port"},
        BadCase{{"m", "--otlp_endpoint=c:70000"}, "must be host:port"},
        BadCase{{"m", "--trace_sample_ratio=1.5"}, "'1.5' must be from 0 to 1"},
        BadCase{{"m", "--max_timeout_seconds=-1"}, "'-1' must be from 0 to 86400"},
        BadCase{{"m", "--log_format=xml"}, "'xml' must be text or json"},
        BadCase{{"m", "--config=/no/such/file"}, "/no/such/file: cannot be read"}));

TEST_F(ConfigTest, FileErrorsNameFileAndKey) {
  for (const auto& [text, message] :
       {std::pair{"[1]", "is not a JSON object"}, std::pair{"{\"a\": ", "is not a JSON object"},
        std::pair{"{\"grpc_prot\": 1}", "unknown key 'grpc_prot'"},
        std::pair{"{\"models\": {\"a\": 1}}", "'models' must be"},
        std::pair{"{\"config\": \"x\"}", "unknown key 'config'"}}) {
    const std::string file = WriteFile(text);
    const auto config = Load({"--config=" + file});
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(message));
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(file));
  }
}

}  // namespace
}  // namespace longview::server
