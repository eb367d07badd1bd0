#include "server/app/connection_log.h"

#include "server/scheduler/steady_clock.h"

namespace longview::server {

ConnectionEnds ConnectionLog::For(std::string transport) {
  return [this, transport = std::move(transport)](EndCause cause, std::string_view address) {
    Ended(transport, cause, address);
  };
}

void ConnectionLog::Ended(const std::string& transport, EndCause cause, std::string_view address) {
  metrics_.ConnectionEnded(transport, EndCauseName(cause));
  int64_t unwritten = 0;
  {
    absl::MutexLock lock(&mutex_);
    Line& line = lines_[{transport, cause}];
    const absl::Time now = SteadyNow();
    if (now - line.last < absl::Seconds(1)) {
      ++line.unwritten;
      return;
    }
    line.last = now;
    unwritten = std::exchange(line.unwritten, 0);
  }
  const Log::Fields fields = {{"transport", transport},
                              {"reason", EndCauseName(cause)},
                              {"client", address},
                              {unwritten > 0 ? "others_before" : "", unwritten}};
  // Idle connections are there to make room.
  if (cause == EndCause::kRoom) return log_.Info("connection ended by the server", fields);
  log_.Warning("connection ended by the server", fields);
}

}  // namespace longview::server
