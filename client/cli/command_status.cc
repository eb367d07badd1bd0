#include <nlohmann/json.hpp>

#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/terminal.h"
#include "inference/grpc_service.grpc.pb.h"

namespace longview::client {
namespace {

struct ServerState {
  grpc::Status status;  // The first failed question's status.
  std::string version;
  bool live = false;
  bool ready = false;
};

// REQUIRES: the channel is connected. Only the version needs a key, and is left out without one: a
// probe has none.
ServerState Ask(const CommandLine& line, const std::shared_ptr<grpc::Channel>& channel) {
  const auto stub = inference::GRPCInferenceService::NewStub(channel);
  ServerState state;
  {
    grpc::ClientContext context;
    Prepare(context, line.api_key, line.timeout_seconds);
    inference::ServerLiveResponse live;
    state.status = stub->ServerLive(&context, {}, &live);
    state.live = live.live();
    if (!state.status.ok()) return state;
  }
  {
    grpc::ClientContext context;
    Prepare(context, line.api_key, line.timeout_seconds);
    inference::ServerReadyResponse ready;
    state.status = stub->ServerReady(&context, {}, &ready);
    state.ready = ready.ready();
    if (!state.status.ok()) return state;
  }
  grpc::ClientContext context;
  Prepare(context, line.api_key, line.timeout_seconds);
  inference::ServerMetadataResponse metadata;
  state.status = stub->ServerMetadata(&context, {}, &metadata);
  state.version = metadata.name() + " " + metadata.version();
  if (state.status.error_code() == grpc::StatusCode::UNAUTHENTICATED && line.api_key.empty()) {
    state.status = grpc::Status::OK;
    state.version = "longview";
  }
  return state;
}

}  // namespace

ExitCode RunStatus(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  const ServerState state = Ask(line, connection.channel);
  if (!state.status.ok()) {
    Error(console) << Explain(state.status, line) << "\n";
    return state.status.error_code() == grpc::StatusCode::UNAVAILABLE ? kServerNotReached
                                                                      : kSomeInputFailed;
  }
  if (line.json) {
    nlohmann::ordered_json json = {{"server", line.server},
                                   {"version", state.version},
                                   {"live", state.live},
                                   {"ready", state.ready}};
    console.out << json.dump() << "\n";
  } else {
    const auto word = [&](bool good, const char* yes, const char* no) {
      return Paint(console.out_colors, good ? Color::kGood : Color::kBad, good ? yes : no);
    };
    console.out << state.version << " at " << line.server << ": "
                << word(state.live, "live", "not live") << ", "
                << word(state.ready, "ready", "not ready") << "\n";
  }
  return state.live && state.ready ? kAllWell : kSomeInputFailed;
}

}  // namespace longview::client
