// The flags of longview-server, as absl flags. Only config.cc reads them.
#pragma once

#include <string>

#include "absl/flags/declare.h"
#include "absl/types/optional.h"

ABSL_DECLARE_FLAG(std::string, config);
ABSL_DECLARE_FLAG(std::string, models);
ABSL_DECLARE_FLAG(std::string, task);
ABSL_DECLARE_FLAG(std::string, host);
ABSL_DECLARE_FLAG(std::string, server_names);
ABSL_DECLARE_FLAG(int, grpc_port);
ABSL_DECLARE_FLAG(int, http_port);
ABSL_DECLARE_FLAG(int, admin_port);
ABSL_DECLARE_FLAG(std::string, device);
ABSL_DECLARE_FLAG(std::string, dtype);
ABSL_DECLARE_FLAG(absl::optional<int>, threads);
ABSL_DECLARE_FLAG(std::string, max_message_bytes);
ABSL_DECLARE_FLAG(double, max_queue_seconds);
ABSL_DECLARE_FLAG(std::string, max_image_pixels);
ABSL_DECLARE_FLAG(bool, truncate);
ABSL_DECLARE_FLAG(std::string, cache_bytes);
ABSL_DECLARE_FLAG(std::string, log_format);
ABSL_DECLARE_FLAG(std::string, log_level);
ABSL_DECLARE_FLAG(std::string, otlp_endpoint);
ABSL_DECLARE_FLAG(double, trace_sample_ratio);
ABSL_DECLARE_FLAG(std::string, tls_cert);
ABSL_DECLARE_FLAG(std::string, tls_key);
ABSL_DECLARE_FLAG(std::string, tls_client_ca);
ABSL_DECLARE_FLAG(std::string, api_keys_file);
ABSL_DECLARE_FLAG(bool, share_prefixes);
ABSL_DECLARE_FLAG(std::string, trusted_proxies);
ABSL_DECLARE_FLAG(bool, proxy_protocol);
ABSL_DECLARE_FLAG(absl::optional<bool>, allow_model_control);
ABSL_DECLARE_FLAG(int, drain_seconds);
ABSL_DECLARE_FLAG(int, shutdown_seconds);
ABSL_DECLARE_FLAG(int, max_connection_age_seconds);
ABSL_DECLARE_FLAG(int, max_connections);
ABSL_DECLARE_FLAG(int, max_connections_per_address);
ABSL_DECLARE_FLAG(int, default_timeout_seconds);
ABSL_DECLARE_FLAG(int, max_timeout_seconds);
ABSL_DECLARE_FLAG(std::string, check);
ABSL_DECLARE_FLAG(bool, print_config);
ABSL_DECLARE_FLAG(bool, validate_config);
ABSL_DECLARE_FLAG(bool, version);
ABSL_DECLARE_FLAG(bool, help);
