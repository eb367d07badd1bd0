// Starts the calls of a load test.
//
// Thread-safe: yes; a call owns all it needs until it has ended.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/cli/load_run.h"
#include "longview/v1/text.grpc.pb.h"

namespace longview::client {

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

}  // namespace longview::client
