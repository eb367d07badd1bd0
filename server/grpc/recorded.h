// Calls that the Api does not record by itself.
#pragma once

#include <string>
#include <utility>

#include "models/status_macros.h"
#include "server/api/api.h"

namespace longview::server {

// The result as the client gets it, after recording.
template <typename Response>
absl::StatusOr<Response> Recorded(Api& api, const CallInfo& info, const std::string& model,
                                  absl::StatusOr<Response> result) {
  RETURN_IF_ERROR(api.Record(info, model, "", result.status()));
  return result;
}

// Records before it passes the result on.
template <typename Response>
Reply<Response> RecordedReply(Api& api, CallInfo info, std::string model, Reply<Response> reply) {
  return [&api, info = std::move(info), model = std::move(model),
          reply = std::move(reply)](absl::StatusOr<Response> result) mutable {
    reply(Recorded(api, info, model, std::move(result)));
  };
}

}  // namespace longview::server
