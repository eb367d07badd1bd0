// The server's own cost: a model that does nothing, 4,096 token ids per request.
//
//   server_overhead [seconds per measurement, default 3]
//
// The server runs in a child process on loopback, so that its CPU time can be told from the
// client's. Prints: p50/p99 with one call outstanding beside the direct call into the model,
// requests per second and server CPU per request with 32 outstanding, and p50/p99 under
// Poisson arrivals at half of that rate. Every answer is compared with the model's own.
//
// A bare gRPC service in a child of its own gets the same calls first, and parses, hashes and
// answers in its handler: what gRPC, protobuf and the machine's wake-ups cost without Longview.
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "absl/time/clock.h"
#include "longview/v1/text.grpc.pb.h"
#include "server/app/server.h"
#include "tests/support/fake_model.h"

namespace longview::server {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int kTokens = 4096;

double Seconds(SteadyClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

testing::FakeOptions NothingOptions() {
  testing::FakeOptions options;
  options.vocabulary = 65536;
  options.max_tokens = kTokens;
  options.labels = {"nothing"};  // One hash over the ids is all the model computes.
  options.problem_type = models::ProblemType::kRegression;
  return options;
}

std::vector<int32_t> Ids() {
  std::mt19937 random(3);
  std::vector<int32_t> ids(kTokens);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % 50000);
  return ids;
}

// The child: serves until SIGTERM; writes its gRPC port to `pipe`.
[[noreturn]] void ServeForever(int pipe) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("longview_overhead_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "nothing");
  std::ofstream(folder / "nothing/config.json") << "{}";
  Config config;
  config.models = {folder.string()};
  config.host = "127.0.0.1";
  config.http_port = -1;
  config.max_message_bytes = 64 << 20;
  config.max_queue_seconds = 1000;
  config.cache_bytes = uint64_t{1} << 40;
  // One line a request, as in production; nobody reads it here.
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
  Log log(LogFormat::kJson, LogLevel::kInfo);
  Server server(config, log, nullptr, [](const std::string&, const std::string&) {
    return absl::StatusOr<std::unique_ptr<models::Model>>(
        std::make_unique<testing::FakeModel>(NothingOptions()));
  });
  std::atomic<bool> warm = false;
  if (!server.Start([&warm](absl::Status) { warm = true; }).ok()) _exit(1);
  while (!warm) absl::SleepFor(absl::Milliseconds(10));
  server.BeReady();
  const int port = server.ports().grpc;
  if (write(pipe, &port, sizeof(port)) != sizeof(port)) _exit(1);
  pause();
  std::filesystem::remove_all(folder);
  _exit(0);
}

// The least a gRPC server can do for the same call: everything inside the handler.
class BareService : public v1::TextService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const v1::ClassifyRequest* request,
                                     v1::ClassifyResponse* response) override {
    const std::vector<int32_t> ids(request->token_ids().begin(), request->token_ids().end());
    v1::Label* const label = response->add_labels();
    label->set_name("nothing");
    label->set_score(testing::FakeLogits(ids, 1)[0]);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

[[noreturn]] void ServeBare(int pipe) {
  BareService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (write(pipe, &port, sizeof(port)) != sizeof(port)) _exit(1);
  pause();
  _exit(0);
}

// CPU seconds a process has used.
double CpuSeconds(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Latencies {
  std::vector<double> seconds;
  double At(double share) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[static_cast<size_t>(share * static_cast<double>(seconds.size() - 1))];
  }
};

class Client {
 public:
  Client(int port)
      : stub_(v1::TextService::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                           grpc::InsecureChannelCredentials()))) {
    const std::vector<int32_t> ids = Ids();
    request_.set_model("nothing");
    request_.mutable_token_ids()->Assign(ids.begin(), ids.end());
    expected_ = testing::FakeLogits(ids, 1)[0];
  }

  double CallOnce() {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    const auto start = SteadyClock::now();
    const grpc::Status status = stub_->Classify(&context, request_, &response);
    const double seconds = Seconds(SteadyClock::now() - start);
    Check(status, response);
    return seconds;
  }

  // Starts a call; `done(seconds since intended start)` runs on gRPC's thread.
  void CallAsync(SteadyClock::time_point intended, std::function<void(double)> done) {
    struct State {
      grpc::ClientContext context;
      v1::ClassifyResponse response;
    };
    auto* const state = new State;
    stub_->async()->Classify(&state->context, &request_, &state->response,
                             [this, state, intended, done](const grpc::Status& status) {
                               Check(status, state->response);
                               delete state;
                               done(Seconds(SteadyClock::now() - intended));
                             });
  }

 private:
  void Check(const grpc::Status& status, const v1::ClassifyResponse& response) const {
    if (status.ok() && response.labels_size() == 1 && response.labels(0).score() == expected_) {
      return;
    }
    std::fprintf(stderr, "wrong answer: %s\n", status.error_message().c_str());
    std::abort();
  }

  std::unique_ptr<v1::TextService::Stub> stub_;
  v1::ClassifyRequest request_;
  float expected_;
};

// Latencies of the request straight into the model, without the server around its stages.
Latencies MeasureDirect(int rounds) {
  testing::FakeModel model(NothingOptions());
  models::Request request;
  request.tokens.emplace().ids = Ids();
  Latencies latencies;
  for (int i = 0; i < rounds; ++i) {
    const auto start = SteadyClock::now();
    const auto item = model.Prepare(request);
    const models::Item* const items[] = {item->get()};
    const auto run = model.Begin(items, nullptr);
    while (run->Advance()) {
    }
    if (!run->Take(0).ok()) std::abort();
    latencies.seconds.push_back(Seconds(SteadyClock::now() - start));
  }
  return latencies;
}

// Keeps `outstanding` calls in flight for `seconds`; returns the number answered.
int64_t MeasureClosed(Client& client, int outstanding, double seconds) {
  std::atomic<int64_t> answered = 0;
  std::atomic<int> running = outstanding;
  const auto end = SteadyClock::now() + std::chrono::duration<double>(seconds);
  std::function<void(double)> next = [&](double) {
    ++answered;
    if (SteadyClock::now() < end) {
      client.CallAsync(SteadyClock::now(), next);
    } else {
      --running;
    }
  };
  for (int i = 0; i < outstanding; ++i) client.CallAsync(SteadyClock::now(), next);
  while (running > 0) absl::SleepFor(absl::Milliseconds(1));
  return answered;
}

// Poisson arrivals at `rate`; latencies count from the intended start.
Latencies MeasureOpen(Client& client, double rate, double seconds) {
  std::mutex mutex;
  Latencies latencies;
  std::atomic<int> running = 0;
  std::mt19937 random(11);
  std::exponential_distribution<double> gap(rate);
  auto due = SteadyClock::now();
  const auto end = due + std::chrono::duration<double>(seconds);
  while (due < end) {
    std::this_thread::sleep_until(due);
    ++running;
    client.CallAsync(due, [&](double latency) {
      std::lock_guard lock(mutex);
      latencies.seconds.push_back(latency);
      --running;
    });
    due += std::chrono::duration_cast<SteadyClock::duration>(
        std::chrono::duration<double>(gap(random)));
  }
  while (running > 0) absl::SleepFor(absl::Milliseconds(1));
  return latencies;
}

struct Figures {
  double one_seconds;  // p50, one call outstanding.
  double one_cpu;      // Server's CPU seconds per request, one outstanding.
  double rate;         // Requests per second, 32 outstanding.
  double busy_cpu;     // Server's CPU seconds per request, 32 outstanding.
};

Figures MeasureServer(Client& client, pid_t server, double seconds) {
  Figures figures;
  for (int i = 0; i < 200; ++i) client.CallOnce();
  Latencies one;
  const double cpu_one = CpuSeconds(server);
  const auto end = SteadyClock::now() + std::chrono::duration<double>(seconds);
  while (SteadyClock::now() < end) one.seconds.push_back(client.CallOnce());
  figures.one_cpu = (CpuSeconds(server) - cpu_one) / static_cast<double>(one.seconds.size());
  figures.one_seconds = one.At(0.5);
  std::printf("  one outstanding   p50 %7.1f us  p99 %7.1f us  server CPU %.1f us per request\n",
              one.At(0.5) * 1e6, one.At(0.99) * 1e6, figures.one_cpu * 1e6);

  const double cpu_before = CpuSeconds(server);
  const auto start = SteadyClock::now();
  const int64_t answered = MeasureClosed(client, 32, seconds);
  figures.rate = static_cast<double>(answered) / Seconds(SteadyClock::now() - start);
  figures.busy_cpu = (CpuSeconds(server) - cpu_before) / static_cast<double>(answered);
  std::printf("  32 outstanding    %.0f requests/s  server CPU %.1f us per request\n", figures.rate,
              figures.busy_cpu * 1e6);

  Latencies open = MeasureOpen(client, figures.rate / 2, seconds);
  std::printf("  Poisson %6.0f/s  p50 %7.1f us  p99 %7.1f us\n", figures.rate / 2,
              open.At(0.5) * 1e6, open.At(0.99) * 1e6);
  return figures;
}

// Starts `serve` in a child, measures it, ends it.
Figures MeasureChild(const char* name, void (*serve)(int pipe), double seconds) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) serve(ends[1]);
  int port = 0;
  if (read(ends[0], &port, sizeof(port)) != sizeof(port)) std::exit(1);
  std::printf("%s\n", name);
  Figures figures;
  {
    Client client(port);
    figures = MeasureServer(client, child, seconds);
  }
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
  return figures;
}

}  // namespace
}  // namespace longview::server

// gRPC is not used after a fork in the parent that used it before: each measurement runs in a
// process of its own, and hands its figures over a pipe.
longview::server::Figures InOwnProcess(const char* name, void (*serve)(int), double seconds) {
  using longview::server::Figures;
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  std::fflush(stdout);
  if (fork() == 0) {
    const Figures figures = longview::server::MeasureChild(name, serve, seconds);
    std::fflush(stdout);
    _exit(write(ends[1], &figures, sizeof(figures)) == sizeof(figures) ? 0 : 1);
  }
  Figures figures;
  if (read(ends[0], &figures, sizeof(figures)) != sizeof(figures)) std::exit(1);
  wait(nullptr);
  return figures;
}

int main(int argc, char** argv) {
  using namespace longview::server;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  const Figures bare = InOwnProcess("bare gRPC", ServeBare, seconds);
  const Figures ours = InOwnProcess("Longview", ServeForever, seconds);
  const double direct = MeasureDirect(2000).At(0.5);
  std::printf("direct call         p50 %7.1f us\n", direct * 1e6);
  std::printf("added to the direct call: bare gRPC %.1f us, Longview %.1f us (goal 150)\n",
              (bare.one_seconds - direct) * 1e6, (ours.one_seconds - direct) * 1e6);
  std::printf("server CPU at 32:         bare gRPC %.1f us, Longview %.1f us (goal 60)\n",
              bare.busy_cpu * 1e6, ours.busy_cpu * 1e6);
}
