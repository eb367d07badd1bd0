// The lines that the gRPC library itself writes.
#pragma once

#include "server/log/log.h"

namespace longview::server {

// From here on the library's errors are lines like the server's own, and no thread of the library
// waits for a stderr that nobody reads: what it does not take at once is lost. Handshakes that fail
// are of level info, one a second at most. For the whole process; before any use of gRPC.
void FormatGrpcLog(LogFormat format);

}  // namespace longview::server
