// The typed Generate call: one prompt in, numbered messages out.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "longview/v1/text.pb.h"
#include "server/api/context.h"

namespace longview::server {

// `on_ready` as PieceFlow's; it may run inside this call.
std::unique_ptr<GenerateStream> StartGenerate(ApiContext& context, const CallInfo& info,
                                              const longview::v1::GenerateRequest& proto,
                                              absl::AnyInvocable<void()> on_ready);

}  // namespace longview::server
