// Connections that a transport refuses or closes of its own accord: why, for the log and the
// metrics. An address that a limit has shut out is refused with the limit's cause.
#pragma once

#include <functional>
#include <string_view>

namespace longview::server {

enum class EndCause {
  kLimit,        // Connection refused: port or address at its limit, and no connection idles.
  kRoom,         // Idle connection evicted for a new one.
  kProxyHeader,  // A trusted proxy sent no valid header of the PROXY protocol in time.
  kBytes,        // Too many bytes of its address half sent or in memory, or no call followed them.
  kCalls,        // Too many calls of its address are open.
  kResets,       // Too many calls of its address were left soon after they began.
  kFlood,        // Calls came faster than they could begin, most of them on it.
  kSlow,         // A request's head or body came too slowly, or an answer was read too slowly.
};

// "limit", "room", "proxy_header" and so on, as the metric's label has it.
std::string_view EndCauseName(EndCause cause);

// Told of each such connection with its client's address. Called on the transports' threads, also
// under their locks: must neither block nor use the transport. Empty: nobody is told.
using ConnectionEnds = std::function<void(EndCause cause, std::string_view address)>;

}  // namespace longview::server
