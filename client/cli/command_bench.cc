#include <memory>
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

namespace longview::client {
namespace {

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
      console.err << "longview: " << input.path << ": " << text.status().message() << "\n";
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
    request.set_truncate(line.truncate);
  }
  return requests;
}

// What a call owns while it is under way.
template <typename Response>
struct Call {
  grpc::ClientContext context;
  Response response;
};

// Sends every document once, so that the first measured call is not the first call ever, and a
// request that the server refuses is reported before the test and not as its result.
template <typename Request, typename Send>
bool WarmUp(const std::vector<Request>& requests, const Send& send, Console& console) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const grpc::Status status = send(requests[i]);
    if (status.ok()) continue;
    console.err << "longview: document " << i << ": " << CodeName(status.error_code()) << ": "
                << status.error_message() << "\n";
    return false;
  }
  return true;
}

template <typename Request, typename Response, typename StartAsync, typename Send>
ExitCode Measure(const CommandLine& line, Console& console, const std::vector<Request>& requests,
                 const StartAsync& start_async, const Send& send, LoadRun run) {
  if (!WarmUp(requests, send, console)) return kSomeInputFailed;
  run.host = line.server;
  run.rate = line.rate;
  run.duration = line.duration;
  run.date = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  const StartCall start = [&](int index, std::function<void(grpc::Status)> done) {
    auto* call = new Call<Response>;
    Prepare(call->context, line.api_key, line.timeout_seconds);
    start_async(&call->context, &requests[index], &call->response,
                [call, done = std::move(done)](grpc::Status status) {
                  delete call;
                  done(std::move(status));
                });
  };
  run.samples = RunLoad(PoissonArrivals(line.rate, line.duration, static_cast<int>(requests.size()),
                                        line.seed.value_or(1)),
                        start, &run.total_seconds);
  console.out << (line.json ? LoadReportJson(run) + "\n" : LoadReportText(run));
  for (const LoadSample& sample : run.samples) {
    if (sample.code != grpc::StatusCode::OK) return kSomeInputFailed;
  }
  return kAllWell;
}

}  // namespace

ExitCode RunBench(const CommandLine& line, Console& console) {
  Documents documents;
  if (ExitCode code = ReadDocuments(line, console, &documents); code != kAllWell) return code;
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  const std::string task = line.task == "classify" ? "text-classification"
                           : line.task == "embed"  ? "embedding"
                                                   : "";
  v1::Model model;
  const ExitCode chosen = ChooseModel(*connection.client, line, task, console, &model);
  if (chosen != kAllWell) return chosen;
  const auto stub = v1::TextService::NewStub(connection.channel);
  LoadRun run;
  if (line.task == "classify" || (line.task.empty() && model.task() == "text-classification")) {
    run.call = "longview.v1.TextService.Classify";
    return Measure<v1::ClassifyRequest, v1::ClassifyResponse>(
        line, console, MakeRequests<v1::ClassifyRequest>(documents, line, model.name()),
        [&](auto... arguments) { stub->async()->Classify(std::move(arguments)...); },
        [&](const v1::ClassifyRequest& request) {
          v1::ClassifyResponse response;
          return connection.client->Classify(request, &response);
        },
        std::move(run));
  }
  run.call = "longview.v1.TextService.Embed";
  return Measure<v1::EmbedRequest, v1::EmbedResponse>(
      line, console, MakeRequests<v1::EmbedRequest>(documents, line, model.name()),
      [&](auto... arguments) { stub->async()->Embed(std::move(arguments)...); },
      [&](const v1::EmbedRequest& request) {
        v1::EmbedResponse response;
        return connection.client->Embed(request, &response);
      },
      std::move(run));
}

}  // namespace longview::client
