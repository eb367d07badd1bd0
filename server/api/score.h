// Scores of pairs: how well each second text answers its first one.
#pragma once

#include <memory>

#include "server/api/context.h"
#include "server/api/score_answer.h"

namespace longview::server {

// Each pair is an item; the first that fails fails the call, by its index. Errors found before the
// engine are replied inside the call.
std::shared_ptr<PendingCall> RunScore(ApiContext& context, const CallInfo& info,
                                      const ScoreRequest& request, Reply<ScoreAnswer> reply);

}  // namespace longview::server
