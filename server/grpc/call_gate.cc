#include "server/grpc/call_gate.h"

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/grpc/call_context.h"
#include "server/security/roles.h"

namespace longview::server {
namespace {

// Only browsers say which page a call comes from, and a page has no business with model control: it
// speaks HTTP, where its origin can be compared with the host it was loaded from.
absl::Status CheckNoPage(const grpc::ServerContextBase& context, std::string_view method) {
  if (PermissionOf(method) != Permission::kControl) return absl::OkStatus();
  const std::string_view origin = Metadata(context, "origin");
  if (origin.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kPermissionDenied,
                   absl::StrCat("metadata origin is ", Quoted(origin),
                                ", expected none where models are loaded and unloaded over gRPC"),
                   {.reason = "FOREIGN_ORIGIN"});
}

}  // namespace

CallInfo CallGate::Read(const grpc::CallbackServerContext& context, std::string_view method,
                        const std::string& address) const {
  return ReadCallInfo(context, method, proxies_, address);
}

absl::Status CallGate::Admit(const grpc::CallbackServerContext& context, CallInfo& info) const {
  absl::Status admitted = absl::OkStatus();
  if (keys_ != nullptr) admitted = keys_->Admit(Metadata(context, "authorization"), info);
  if (admitted.ok()) admitted = CheckNoPage(context, info.method);
  if (!admitted.ok()) return Record(info, admitted);
  api_.Trace(info);
  return absl::OkStatus();
}

}  // namespace longview::server
