// The streams of a command; tests pass string streams.
#pragma once

#include <istream>
#include <ostream>

namespace longview::client {

// Not thread-safe: one thread writes.
struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;  // Progress is shown on terminals only.
  bool out_is_terminal = false;  // Text shows up as it is generated, tables are in columns.
  bool err_colors = false;
  bool out_colors = false;
};

}  // namespace longview::client
