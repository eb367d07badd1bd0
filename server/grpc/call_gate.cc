#include "server/grpc/call_gate.h"

#include <utility>

#include "server/grpc/call_context.h"

namespace longview::server {

absl::StatusOr<CallInfo> CallGate::Admit(grpc::CallbackServerContext& context,
                                         std::string_view method) const {
  CallInfo info = ReadCallInfo(context, method);
  if (keys_ != nullptr) {
    absl::StatusOr<std::string> client = keys_->Authenticate(Metadata(context, "authorization"));
    if (!client.ok()) return api_.Record(info, "", "", client.status());
    info.client = *std::move(client);
  }
  api_.Trace(info);
  return info;
}

}  // namespace longview::server
