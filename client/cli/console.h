// Where a command reads and writes; tests pass string streams.
#ifndef LONGVIEW_CLIENT_CLI_CONSOLE_H_
#define LONGVIEW_CLIENT_CLI_CONSOLE_H_

#include <istream>
#include <ostream>

namespace longview::client {

// Not thread-safe: one thread writes.
struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;  // Progress is shown on terminals only.
};

}  // namespace longview::client

#endif  // LONGVIEW_CLIENT_CLI_CONSOLE_H_
