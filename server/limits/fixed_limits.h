// Limits that no flag sets; --help tells them.
#pragma once

#include <cstddef>

namespace longview::server {

// The bytes of a request's head over HTTP and of a call's metadata over gRPC, either with its field
// names: tokens of some identity providers (JWT with groups, Kerberos) pass 8 KiB.
inline constexpr size_t kMaxHeadBytes = size_t{16} << 10;

// An HTTP connection may idle for so long between requests. Clients that keep theirs for 90 s (Go,
// reqwest) then never meet one that is just being closed.
inline constexpr int kMaxIdleSeconds = 120;

}  // namespace longview::server
