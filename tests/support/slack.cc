#include "tests/support/slack.h"

namespace longview::testing {

double TimeSlack() {
#if defined(LONGVIEW_THREAD_SANITIZER)
  return 10;
#elif defined(__SANITIZE_ADDRESS__)
  return 4;
#else
  return 1;
#endif
}

}  // namespace longview::testing
