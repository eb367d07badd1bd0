// A generating model as a process, for programs that compare: one JSON request per line of stdin,
// one JSON answer per line of stdout.
//
//   generator_pipe DIRECTORY DTYPE THREADS
//
//   {"ids": [...], "global": [positions], "options": {HuggingFace's names}, "start": [...]}
//   -> {"sequences": [[ids], ...], "scores": [...], "logprobs": [[...], ...],
//       "first_seconds": until the first token was chosen, "rest_seconds": from there on}
//   or {"error": "..."}
//
// `logprobs` are those of the sampled tokens if the options ask for them. The first line of output
// says what was loaded.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "models/model.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"

namespace longview::bench {
namespace {

using models::Answer;
using models::Request;
using models::Task;
using nlohmann::json;

constexpr double kCacheBytes = 4e9;

double Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

absl::StatusOr<Request> ReadRequest(const json& line, const models::ModelInfo& info) {
  Request request;
  request.task = info.task;
  request.tokens.emplace().ids = line.at("ids").get<std::vector<int32_t>>();
  if (line.contains("global")) {
    request.global_positions = line["global"].get<std::vector<int32_t>>();
  }
  if (line.contains("start")) {
    request.decoder_tokens.emplace().ids = line["start"].get<std::vector<int32_t>>();
  }
  models::GenerationOptions& options = request.generation.emplace();
  const json given = line.value("options", json::object());
  for (const auto& [name, value] : given.items()) {
    RETURN_IF_ERROR(SetOption(options, name, value.dump()));
  }
  return request;
}

absl::StatusOr<json> Run(models::Model& model, const json& line) {
  ASSIGN_OR_RETURN(const Request request, ReadRequest(line, model.info()));
  ASSIGN_OR_RETURN(const auto item, model.Prepare(request));
  ASSIGN_OR_RETURN(auto generation, model.Start(*item));
  const double start = Now();
  double first = 0;
  while (!generation->done()) {
    const models::StepGrant grant = {generation.get(), generation->need().prefill};
    const std::unique_ptr<models::Run> run = model.BeginStep({&grant, 1});
    while (run->Advance()) {
    }
    if (first == 0 && generation->need().prefill == 0) first = Now() - start;
  }
  const double all = Now() - start;
  ASSIGN_OR_RETURN(const Answer answer, generation->Take());
  json out = {{"first_seconds", first}, {"rest_seconds", all - first}};
  for (const models::Piece& piece : answer.sequences) {
    out["sequences"].push_back(piece.token_ids);
    out["scores"].push_back(piece.score);
    json logprobs = json::array();
    for (const models::TokenLogprob& token : piece.logprobs) logprobs.push_back(token.logprob);
    out["logprobs"].push_back(std::move(logprobs));
  }
  return out;
}

int Main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "generator_pipe DIRECTORY DTYPE THREADS\n");
    return 2;
  }
  models::SetComputeThreads(std::atoi(argv[3]));
  absl::StatusOr<std::unique_ptr<models::Model>> model =
      models::LoadModel(argv[1], {.dtype = argv[2], .cache_bytes = kCacheBytes});
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", std::string(model.status().message()).c_str());
    return 1;
  }
  const models::ModelInfo& info = (*model)->info();
  std::cout << json{{"architecture", info.architecture}, {"dtype", info.dtype}} << std::endl;
  for (std::string text; std::getline(std::cin, text);) {
    const absl::StatusOr<json> answer = Run(**model, json::parse(text));
    if (answer.ok()) {
      std::cout << *answer << std::endl;
    } else {
      std::cout << json{{"error", std::string(answer.status().message())}} << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) { return longview::bench::Main(argc, argv); }
