// The door of every call: who calls, and what comes along besides the message.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string_view>

#include "absl/status/statusor.h"
#include "server/api/api.h"
#include "server/security/api_keys.h"

namespace longview::server {

// Thread-safe. Borrows the Api and the keys.
class CallGate {
 public:
  // `keys` null: no call needs one.
  CallGate(Api& api, const ApiKeys* keys) : api_(api), keys_(keys) {}

  // The call's CallInfo, whose client is the key's name if keys are needed. UNAUTHENTICATED
  // without a known key; such a call has been recorded. `method`: static storage.
  absl::StatusOr<CallInfo> Admit(grpc::CallbackServerContext& context,
                                 std::string_view method) const;

 private:
  Api& api_;
  const ApiKeys* const keys_;
};

// A streaming call that ends as it begins. Owns itself.
template <typename Reactor>
class RefusedCall final : public Reactor {
 public:
  explicit RefusedCall(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace longview::server
