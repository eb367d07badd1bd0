#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/inputs.h"
#include "client/cli/load_plan.h"
#include "client/cli/load_report.h"
#include "client/cli/load_run.h"
#include "client/cli/terminal.h"
#include "longview/v1/text.grpc.pb.h"

namespace longview::client {
namespace {

struct CallSettings {
  std::string api_key;
  double timeout_seconds = 60;
};

using OnCallEnd = std::function<void(CallEnd)>;

// Begin a call and return at once. `request` and `stub` must outlive it; `done` runs once, on a
// thread of gRPC's.
void StartClassify(v1::TextService::Stub& stub, const v1::ClassifyRequest& request,
                   const CallSettings& settings, OnCallEnd done);
void StartEmbed(v1::TextService::Stub& stub, const v1::EmbedRequest& request,
                const CallSettings& settings, OnCallEnd done);
// Notes when each message with text or tokens came.
void StartGenerate(v1::TextService::Stub& stub, const v1::GenerateRequest& request,
                   const CallSettings& settings, OnCallEnd done);

// The state of a unary call while it is under way.
template <typename Response>
struct UnaryCall {
  grpc::ClientContext context;
  Response response;
};

template <typename Response, typename Start>
void StartUnary(const CallSettings& settings, OnCallEnd done, const Start& start) {
  auto* call = new UnaryCall<Response>;
  Prepare(call->context, settings.api_key, settings.timeout_seconds);
  start(&call->context, &call->response, [call, done = std::move(done)](grpc::Status status) {
    delete call;
    done(std::move(status));
  });
}

// Reads a stream to its end; deletes itself.
class StreamCall : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  StreamCall(v1::TextService::Stub& stub, const v1::GenerateRequest& request,
             const CallSettings& settings, OnCallEnd done)
      : done_(std::move(done)) {
    Prepare(context_, settings.api_key, settings.timeout_seconds);
    stub.async()->Generate(&context_, &request, this);
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (message_.token_ids_size() > 0 || !message_.text().empty()) {
      end_.pieces.push_back(std::chrono::steady_clock::now());
    }
    StartRead(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    end_.status = status;
    const OnCallEnd done = std::move(done_);
    const CallEnd end = std::move(end_);
    // First: the context holds the channel, and whoever hears of the last end may let go of it;
    // gRPC must not destroy a channel on the thread that runs its callbacks.
    delete this;
    done(end);
  }

 private:
  OnCallEnd done_;
  grpc::ClientContext context_;
  v1::GenerateResponse message_;
  CallEnd end_{grpc::Status::OK};
};

void StartClassify(v1::TextService::Stub& stub, const v1::ClassifyRequest& request,
                   const CallSettings& settings, OnCallEnd done) {
  StartUnary<v1::ClassifyResponse>(
      settings, std::move(done), [&](auto* context, auto* response, auto on_done) {
        stub.async()->Classify(context, &request, response, std::move(on_done));
      });
}

void StartEmbed(v1::TextService::Stub& stub, const v1::EmbedRequest& request,
                const CallSettings& settings, OnCallEnd done) {
  StartUnary<v1::EmbedResponse>(
      settings, std::move(done), [&](auto* context, auto* response, auto on_done) {
        stub.async()->Embed(context, &request, response, std::move(on_done));
      });
}

void StartGenerate(v1::TextService::Stub& stub, const v1::GenerateRequest& request,
                   const CallSettings& settings, OnCallEnd done) {
  new StreamCall(stub, request, settings, std::move(done));
}

// The documents of the test: the inputs' texts, or random tokens of the lengths asked for.
struct Documents {
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> tokens;
};

ExitCode ReadDocuments(const CommandLine& line, Console& console, Documents* documents) {
  for (size_t i = 0; i < line.lengths.size(); ++i) {
    documents->tokens.push_back(RandomTokens(line.lengths[i], static_cast<uint32_t>(i)));
  }
  for (const Input& input : ListInputs(line.inputs)) {
    absl::StatusOr<std::string> text =
        ReadInput(input, ReadOptions{.lossy = line.lossy}, console.in);
    if (!text.ok()) {
      Error(console) << input.path << ": " << text.status().message() << "\n";
      return kSomeInputFailed;
    }
    documents->texts.push_back(*std::move(text));
  }
  if (documents->texts.empty() && documents->tokens.empty()) {
    console.err << "longview: no files in the directories given\n";
    return kSomeInputFailed;
  }
  return kAllWell;
}

template <typename Request>
std::vector<Request> MakeRequests(const Documents& documents, const CommandLine& line,
                                  const std::string& model) {
  std::vector<Request> requests;
  for (const std::string& text : documents.texts) requests.emplace_back().set_text(text);
  for (const std::vector<int32_t>& tokens : documents.tokens) {
    requests.emplace_back().mutable_token_ids()->Add(tokens.begin(), tokens.end());
  }
  for (Request& request : requests) {
    request.set_model(model);
    if (line.truncate) request.set_truncate(true);
  }
  return requests;
}

// Sends every document once, so that the first measured call is not the first call ever, and a
// request that the server refuses is reported before the test and not as its result.
bool WarmUp(size_t requests, const StartCall& start, Console& console) {
  for (size_t i = 0; i < requests; ++i) {
    std::promise<grpc::Status> ended;
    start(static_cast<int>(i), [&](const CallEnd& end) { ended.set_value(end.status); });
    const grpc::Status status = ended.get_future().get();
    if (status.ok()) continue;
    console.err << "longview: document " << i << ": " << CodeName(status.error_code()) << ": "
                << status.error_message() << "\n";
    return false;
  }
  return true;
}

// `start_one` is one of the functions above.
template <typename Request, typename StartOne>
ExitCode Measure(const CommandLine& line, Console& console, const char* method,
                 const std::vector<Request>& requests, v1::TextService::Stub& stub,
                 const StartOne& start_one) {
  const CallSettings settings{.api_key = line.api_key, .timeout_seconds = line.timeout_seconds};
  const StartCall start = [&](int index, OnCallEnd done) {
    start_one(stub, requests[index], settings, std::move(done));
  };
  if (!WarmUp(requests.size(), start, console)) return kSomeInputFailed;
  LoadRun run;
  run.call = std::string("longview.v1.TextService.") + method;
  run.host = line.server;
  run.rate = line.rate;
  run.duration = line.duration;
  run.date = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  run.samples = RunLoad(PoissonArrivals(line.rate, line.duration, static_cast<int>(requests.size()),
                                        line.seed.value_or(1)),
                        start, &run.total_seconds);
  console.out << (line.json ? LoadReportJson(run) + "\n" : LoadReportText(run));
  for (const LoadSample& sample : run.samples) {
    if (sample.code != grpc::StatusCode::OK) return kSomeInputFailed;
  }
  return kAllWell;
}

// The task asked for, else the model's own if it can be measured, else its embedding.
std::string ChooseTask(const CommandLine& line, const v1::Model& model) {
  if (!line.task.empty()) return line.task;
  if (model.task() == "text-classification") return "classify";
  if (model.task() == "text-generation" || model.task() == "text2text-generation") {
    return "generate";
  }
  return "embed";
}

}  // namespace

ExitCode RunBench(const CommandLine& line, Console& console) {
  Documents documents;
  if (ExitCode code = ReadDocuments(line, console, &documents); code != kAllWell) return code;
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  const std::string needed = line.task == "classify"   ? "text-classification"
                             : line.task == "embed"    ? "embedding"
                             : line.task == "generate" ? "text-generation"
                                                       : "";
  v1::Model model;
  const ExitCode chosen = ChooseModel(*connection.client, line, needed, console, &model);
  if (chosen != kAllWell) return chosen;
  const auto stub = v1::TextService::NewStub(connection.channel);
  const std::string task = ChooseTask(line, model);
  if (task == "classify") {
    return Measure(line, console, "Classify",
                   MakeRequests<v1::ClassifyRequest>(documents, line, model.name()), *stub,
                   StartClassify);
  }
  if (task == "embed") {
    return Measure(line, console, "Embed",
                   MakeRequests<v1::EmbedRequest>(documents, line, model.name()), *stub,
                   StartEmbed);
  }
  auto requests = MakeRequests<v1::GenerateRequest>(documents, line, model.name());
  for (v1::GenerateRequest& request : requests) {
    if (line.max_tokens) request.set_max_tokens(*line.max_tokens);
    if (line.temperature) request.set_temperature(static_cast<float>(*line.temperature));
  }
  return Measure(line, console, "Generate", requests, *stub, StartGenerate);
}

}  // namespace longview::client
