// Bounds on real time for programs that run slower than they are: under ThreadSanitizer, say.
#pragma once

namespace longview::testing {

// What a bound on seconds is multiplied with; 1 in a program without sanitizers.
double TimeSlack();

}  // namespace longview::testing
