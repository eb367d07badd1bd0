#include "server/limits/connection_ends.h"

namespace longview::server {

std::string_view EndCauseName(EndCause cause) {
  switch (cause) {
    case EndCause::kLimit:
      return "limit";
    case EndCause::kRoom:
      return "room";
    case EndCause::kProxyHeader:
      return "proxy_header";
    case EndCause::kBytes:
      return "bytes";
    case EndCause::kCalls:
      return "calls";
    case EndCause::kResets:
      return "resets";
    case EndCause::kFlood:
      return "flood";
    case EndCause::kSlow:
      return "slow";
  }
  return "";
}

}  // namespace longview::server
