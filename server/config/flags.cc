#include "server/config/flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, config, "", "JSON file: an object of flag names; the lowest precedence");
ABSL_FLAG(std::string, models, "",
          "model directory, directory of models, or comma list of name=path; default /mnt/models "
          "if it exists, else the bundled models");
ABSL_FLAG(bool, strict, false,
          "a model of a folder that fails to load stops the start, as one that is named always "
          "does; default: the others are served");
ABSL_FLAG(std::string, task, "",
          "task of the models, such as fill-mask, whatever class config.json names; default as "
          "their files say");
ABSL_FLAG(std::string, host, "127.0.0.1", "address to listen on; containers pass 0.0.0.0");
ABSL_FLAG(std::string, server_names, "",
          "comma list of names besides --host and localhost that Host may have in HTTP requests "
          "that load or unload a model");
ABSL_FLAG(
    std::string, cors_origins, "",
    "comma list of origins (https://name:port) whose pages may call over HTTP, or * for every "
    "page; default none but the server's own");
ABSL_FLAG(int, grpc_port, 9000, "gRPC port; 0 = a free one, -1 = off");
ABSL_FLAG(int, http_port, 8080, "HTTP port; 0 = a free one, -1 = off");
ABSL_FLAG(int, admin_port, -1,
          "plaintext HTTP without keys: /livez, /readyz, /metrics; 0 = a free one, -1 = off");
ABSL_FLAG(std::string, device, "auto", "auto, cpu, cuda (all), or a list such as cuda:0,cuda:1");
ABSL_FLAG(
    std::string, dtype, "auto",
    "auto, fp32, bf16, int8 (CPU only), fp16 (devices only); auto = as longview.json says, "
    "else bf16 where config.json says bfloat16 and the CPU multiplies it, fp32 otherwise: for "
    "fp16, too, which only devices compute in");
ABSL_FLAG(absl::optional<int>, threads, absl::nullopt,
          "compute threads of the whole process; default the CPU quota");
ABSL_FLAG(std::string, max_message_bytes, "64MiB",
          "limit of a request and of an answer, after decompression");
ABSL_FLAG(double, max_queue_seconds, 30, "work that may wait per device, in predicted seconds");
ABSL_FLAG(double, nested_share, 0.14,
          "share of a long document's time that shorter requests may take between its parts: "
          "steady short traffic waits about its own time divided by it, and the document takes "
          "that much longer; 0 = they wait for its end");
ABSL_FLAG(std::string, max_image_pixels, "67108864",
          "width x height, checked on the header before decoding");
ABSL_FLAG(std::string, image_plan_bytes, "128MiB",
          "memory in which each image model keeps what it planned for sizes of pictures; 0 = it "
          "plans anew for every batch");
ABSL_FLAG(bool, truncate, false,
          "cut texts that are too long instead of refusing them, where neither the request nor the "
          "model's longview.json says");
ABSL_FLAG(bool, refuse_token_ids, false,
          "refuse token ids on /v1/embeddings: some of OpenAI's clients send those of its own "
          "tokenizer");
ABSL_FLAG(std::string, search_folder, "",
          "folder whose text files clients may list and read over HTTP, for the console's Search "
          "tab; default none");
ABSL_FLAG(std::string, cache_bytes, "25%", "memory for generation state; a size or a percentage");
ABSL_FLAG(std::string, log_format, "", "text or json; default text on a terminal, else json");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning, error");
ABSL_FLAG(std::string, otlp_endpoint, "",
          "host:port of a collector that takes spans (OTLP over gRPC); https:// before it: with "
          "TLS; default: no spans");
ABSL_FLAG(double, trace_sample_ratio, 1,
          "share of the calls without a traceparent that are traced; the others as their caller "
          "says");
ABSL_FLAG(std::string, tls_cert, "",
          "certificate chain (PEM) of both transports; re-read on change");
ABSL_FLAG(std::string, tls_key, "", "private key of --tls_cert (PEM); re-read on change");
ABSL_FLAG(std::string, tls_client_ca, "",
          "certificates (PEM) that sign clients: mutual TLS; re-read on change");
ABSL_FLAG(
    std::string, api_keys_file, "",
    "lines name:key, with role=, max_inflight=, tokens_per_second=, weight= behind; # comments; "
    "re-read on change");
ABSL_FLAG(bool, share_prefixes, false,
          "keys find what others' prompts left in the cache: faster, but they learn of them");
ABSL_FLAG(
    std::string, trusted_proxies, "",
    "addresses and networks of proxies whose X-Forwarded-For and PROXY protocol are believed");
ABSL_FLAG(bool, proxy_protocol, false,
          "connections from --trusted_proxies begin with a header of the PROXY protocol, version 1 "
          "or 2, or are closed");
ABSL_FLAG(absl::optional<bool>, allow_model_control, absl::nullopt,
          "Load and Unload; default true on a loopback host or with keys, else false");
ABSL_FLAG(int, drain_seconds, 10, "after SIGTERM: not ready, but everything is still accepted");
ABSL_FLAG(int, shutdown_seconds, 60, "after that: work in flight may finish");
ABSL_FLAG(int, max_connection_age_seconds, 600,
          "gRPC connections are renewed after this; 0 = never");
ABSL_FLAG(int, max_connections, 0,
          "open connections of each port; 0 = as many as descriptors allow, at most 8192");
ABSL_FLAG(int, max_connections_per_address, 0,
          "of these from one address; 0 = half of them, at most 2048");
ABSL_FLAG(int, default_timeout_seconds, 600,
          "a call without a deadline ends after this with DEADLINE_EXCEEDED; 0 = never");
ABSL_FLAG(int, max_timeout_seconds, 3600, "the longest deadline a call may have; 0 = any");
ABSL_FLAG(std::string, check, "", "explain a model directory and exit; 0 if it would be served");
ABSL_FLAG(
    std::string, quantize, "",
    "find which linears of a model directory may be int8, on --texts or --pictures, write them "
    "to its longview.json and exit; 1 if int8 gains nothing");
ABSL_FLAG(std::string, texts, "",
          "of --quantize: a file of a text a line (.jsonl: an object with \"text\" a line), or a "
          "folder whose files are a text each; 1,000 texts of at most 1 MiB count");
ABSL_FLAG(std::string, pictures, "",
          "of --quantize: a folder of pictures, of which 1,000 of at most 64 MiB count");
ABSL_FLAG(bool, dry_run, false, "of --quantize: write nothing");
ABSL_FLAG(bool, print_config, false, "print the merged configuration as JSON and exit");
ABSL_FLAG(bool, validate_config, false, "check flags, files and model directories and exit");
ABSL_FLAG(bool, version, false, "print the version and exit");
ABSL_FLAG(bool, help, false, "print this and exit");
