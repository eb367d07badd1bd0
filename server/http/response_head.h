// The head of an answer as it goes over the wire.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/http/message.h"

namespace longview::server {

// "OK", "Not Found": the reason phrase of a status line.
std::string_view ReasonPhrase(int status);

struct HeadOptions {
  bool keep_alive = true;
  bool http_1_0 = false;  // Says keep-alive explicitly, which is not that version's default.
  std::string_view request_id;
  const HttpFields* more = nullptr;  // Fields besides the answer's own; null: none.
  // How long the connection may idle; zero: not said.
  absl::Duration idle_timeout = absl::ZeroDuration();
};

// One part of a streamed body in chunked coding; `last` ends the body, with or without data.
// Empty if there is neither.
std::string Chunk(std::string_view data, bool last);

// Status line and fields up to the empty line. Line breaks in field values become blanks.
std::string ResponseHead(const HttpResponse& response, const HeadOptions& options, absl::Time now);

}  // namespace longview::server
