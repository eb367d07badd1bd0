// Takes the PROXY protocol's header off a connection, before anything else reads it.
#pragma once

#include "server/security/proxy_header.h"

namespace longview::server {

// One look at what has arrived on a TCP socket that nobody else reads yet; never blocks.
//
// kWhole: the header is consumed, and the socket stands behind it. kNone: nothing was consumed.
// kPartial: nothing was consumed, and the socket is not readable again (by poll, epoll) before more
// has come or the peer has left; look again then. kBad: close the socket: a malformed header, the
// peer left within one, or an error.
ProxyHeader TakeProxyHeader(int socket);

}  // namespace longview::server
