// How compute threads wait for each other.
#pragma once

namespace longview::server {

// LibTorch's threads (GNU OpenMP) spin for milliseconds while they wait for work. Where other
// processes want the cores too, that takes the time from the thread they wait for: a forward pass
// then took twice as long and three times the CPU. A short spin costs nothing on an idle machine.
// The library reads its environment before main begins, so this sets GOMP_SPINCOUNT and executes
// the program again, in the same process. Returns if the environment says something already, or
// if that is not possible. Call before any thread exists.
void LetIdleThreadsSleep(char** argv);

}  // namespace longview::server
