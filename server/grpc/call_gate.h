// Authenticates an RPC and builds its CallInfo.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/api/api.h"
#include "server/security/api_keys.h"
#include "server/security/client_address.h"

namespace longview::server {

// Thread-safe. Borrows the Api and the keys.
class CallGate {
 public:
  // `keys` null: no call needs one.
  CallGate(Api& api, const ApiKeys* keys, TrustedProxies proxies)
      : api_(api), keys_(keys), proxies_(std::move(proxies)) {}

  // The CallInfo of a call that arrives now, whose client is the address that it comes from.
  // `address`: the connection's. `method`: static storage.
  CallInfo Read(const grpc::CallbackServerContext& context, std::string_view method,
                const std::string& address) const;

  // Lets the call of `info` in; its client is now the key's name if keys are needed. Errors as
  // ApiKeys::Admit, and PERMISSION_DENIED where a web page asks for model control; a call that is
  // refused has been recorded.
  absl::Status Admit(const grpc::CallbackServerContext& context, CallInfo& info) const;

  // One metric sample and one log line for a call that ends before the Api has seen it.
  absl::Status Record(const CallInfo& info, const absl::Status& status) const {
    return api_.Record(info, "", "", status);
  }

 private:
  Api& api_;
  const ApiKeys* const keys_;
  const TrustedProxies proxies_;
};

}  // namespace longview::server
