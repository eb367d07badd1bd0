#include "server/log/bounded_write.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/scheduler/steady_clock.h"

namespace longview::server {
namespace {

// A pipe that is ready takes this much without blocking, and in one piece.
constexpr size_t kPiece = PIPE_BUF;

// The next at most kPiece bytes, up to the end of a line where one lies within them.
std::string_view NextPiece(std::string_view text) {
  if (text.size() <= kPiece) return text;
  const size_t end = text.rfind('\n', kPiece - 1);
  return text.substr(0, end == std::string_view::npos ? kPiece : end + 1);
}

bool AwaitRoom(int descriptor, absl::Duration patience) {
  pollfd waited{descriptor, POLLOUT, 0};
  const auto milliseconds = absl::ToInt64Milliseconds(
      std::clamp(patience, absl::ZeroDuration(), absl::Hours(1)) + absl::Microseconds(999));
  return poll(&waited, 1, static_cast<int>(milliseconds)) > 0;
}

}  // namespace

size_t BoundedWrite(int descriptor, std::string_view text, absl::Duration patience) {
  const absl::Time end = SteadyNow() + patience;
  size_t written = 0;
  while (written < text.size()) {
    if (!AwaitRoom(descriptor, end - SteadyNow())) return written;
    const std::string_view piece = NextPiece(text.substr(written));
    const ssize_t count = write(descriptor, piece.data(), piece.size());
    if (count >= 0) {
      written += static_cast<size_t>(count);
    } else if (errno != EINTR && errno != EAGAIN) {
      return text.size();
    } else if (SteadyNow() >= end) {
      return written;
    }
  }
  return written;
}

}  // namespace longview::server
