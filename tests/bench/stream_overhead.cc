// The server's cost of a streamed token: a generator that computes next to nothing, one piece a
// token and sequence, `streams` of them at a time.
//
//   stream_overhead [streams, default 32] [tokens of each, default 400] [steps per second, 200]
//
// The server runs in a child process on loopback, so that its CPU time can be told from the
// client's. Each transport is measured streaming and collecting; the difference is what streaming
// adds to generating, the sum is what the server uses in all. Text is compared with the
// generator's own.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "longview/v1/text.grpc.pb.h"
#include "server/app/server.h"
#include "tests/support/fake_generator.h"

namespace longview::server {
namespace {

struct Load {
  int streams = 32;
  int tokens = 400;
  double steps_per_second = 200;
};

// The child: serves until it is killed; writes its two ports to `pipe`.
[[noreturn]] void ServeForever(const Load& load, int pipe) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("longview_streams_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "gen");
  std::ofstream(folder / "gen/config.json") << "{}";
  Config config;
  config.models = {folder.string()};
  config.host = "127.0.0.1";
  config.max_message_bytes = 64 << 20;
  config.max_queue_seconds = 1000;
  config.cache_bytes = uint64_t{1} << 40;
  config.grpc_port = config.http_port = 0;
  // One line a request, as in production; nobody reads it here.
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
  Log log(LogFormat::kJson, LogLevel::kInfo);
  Server server(config, log, nullptr, [&load](const std::string&, const std::string&) {
    testing::GeneratorOptions options;
    const double predicted = options.step_seconds + options.decode_seconds * load.streams;
    options.pace = 1 / (load.steps_per_second * predicted);
    return absl::StatusOr<std::unique_ptr<models::Model>>(
        std::make_unique<testing::FakeGenerator>(options));
  });
  std::atomic<bool> warm = false;
  if (!server.Start([&warm](absl::Status) { warm = true; }).ok()) _exit(1);
  while (!warm) absl::SleepFor(absl::Milliseconds(10));
  server.BeReady();
  const int ports[2] = {server.ports().grpc, server.ports().http};
  if (write(pipe, ports, sizeof(ports)) != sizeof(ports)) _exit(1);
  std::filesystem::remove_all(folder);
  for (;;) pause();
}

// CPU seconds a process has used.
double CpuSeconds(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void Check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong answer: %s\n", what);
  std::abort();
}

// One gRPC stream read to its end; returns its messages.
int ReadGrpc(v1::TextService::Stub& stub, const Load& load, bool stream) {
  v1::GenerateRequest request;
  request.set_model("gen");
  request.set_text("Once upon a time");
  request.set_max_tokens(load.tokens);
  request.set_collect(!stream);
  grpc::ClientContext context;
  const auto reader = stub.Generate(&context, request);
  v1::GenerateResponse message;
  std::string text;
  int messages = 0;
  for (; reader->Read(&message); ++messages) text += message.text();
  Check(reader->Finish().ok(), "status");
  Check(text == testing::FakeContinuation("Once upon a time", 0, load.tokens), "text");
  return messages;
}

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Check(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0, "connection");
  return fd;
}

// One completion read to its end; returns its events.
int ReadHttp(int port, const Load& load, bool stream) {
  const int fd = Connect(port);
  const std::string body = R"({"model":"gen","prompt":"Once upon a time","max_tokens":)" +
                           std::to_string(load.tokens) +
                           (stream ? R"(,"stream":true})" : R"(,"stream":false})");
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  Check(send(fd, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()),
        "request");
  std::string answer;
  char bytes[65536];
  for (ssize_t got; (got = recv(fd, bytes, sizeof(bytes), 0)) > 0;) {
    answer.append(bytes, static_cast<size_t>(got));
  }
  close(fd);
  std::string text;
  int events = 0;
  for (size_t at = 0; (at = answer.find("\"text\":\"", at)) != std::string::npos; ++events) {
    at += 8;
    text += answer.substr(at, answer.find('"', at) - at);
  }
  Check(text == testing::FakeContinuation("Once upon a time", 0, load.tokens), "text");
  return events;
}

// `streams` calls at once; returns the server's CPU seconds per token, and messages per token.
template <typename Call>
std::pair<double, double> Measure(pid_t server, const Load& load, Call call) {
  std::atomic<int> messages = 0;
  const double before = CpuSeconds(server);
  std::vector<std::thread> readers;
  for (int i = 0; i < load.streams; ++i) readers.emplace_back([&] { messages += call(); });
  for (std::thread& reader : readers) reader.join();
  const double tokens = static_cast<double>(load.streams) * load.tokens;
  return {(CpuSeconds(server) - before) / tokens, messages / tokens};
}

template <typename Call>
void Report(const char* name, pid_t server, const Load& load, Call call) {
  // Connections, threads and memory that the first calls make are nobody's token.
  for (const bool stream : {false, true}) Measure(server, load, [&] { return call(stream); });
  const auto whole = Measure(server, load, [&] { return call(false); });
  const auto pieces = Measure(server, load, [&] { return call(true); });
  std::printf(
      "%-5s  %5.2f us of server CPU a token (goal 6): %5.2f to generate, %5.2f to stream;"
      "  %.2f messages a token\n",
      name, pieces.first * 1e6, whole.first * 1e6, (pieces.first - whole.first) * 1e6,
      pieces.second);
}

}  // namespace
}  // namespace longview::server

int main(int argc, char** argv) {
  using namespace longview::server;
  Load load;
  if (argc > 1) load.streams = std::atoi(argv[1]);
  if (argc > 2) load.tokens = std::atoi(argv[2]);
  if (argc > 3) load.steps_per_second = std::atof(argv[3]);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t server = fork();
  if (server == 0) ServeForever(load, ends[1]);
  int ports[2];
  if (read(ends[0], ports, sizeof(ports)) != sizeof(ports)) return 1;
  const auto stub = longview::v1::TextService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(ports[0]), grpc::InsecureChannelCredentials()));
  Report("gRPC", server, load, [&](bool stream) { return ReadGrpc(*stub, load, stream); });
  Report("HTTP", server, load, [&](bool stream) { return ReadHttp(ports[1], load, stream); });
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
}
