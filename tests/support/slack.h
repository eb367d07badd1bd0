// Bounds on real time for programs that run slower than they are: under ThreadSanitizer, say.
#pragma once

namespace longview::testing {

// Factor for bounds on seconds; 1 in a program without sanitizers.
double TimeSlack();

}  // namespace longview::testing
