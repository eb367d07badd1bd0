// Settings of the whole process, made before it has threads: how compute threads wait for each
// other, and how many arenas the allocator has.
#pragma once

namespace longview::server {

// LibTorch's threads (GNU OpenMP) spin for milliseconds while they wait for work. Where other
// processes want the cores too, that takes the time from the thread they wait for: a forward pass
// then took twice as long and three times the CPU. A short spin costs nothing on an idle machine.
// The library reads its environment before main begins, so this sets GOMP_SPINCOUNT and executes
// the program again, in the same process. Returns if the environment says something already, or
// if that is not possible. Call before any thread exists.
void LetIdleThreadsSleep(char** argv);

// Limits the allocator to an arena for each core, and two at least. Every load of a model has
// threads of its own; by default these spread over eight arenas a core, and each arena keeps the
// memory at its top for good: malloc_trim gives back that of the main arena alone.
// MALLOC_ARENA_MAX in the environment counts instead. Call before there are other threads.
void LimitMallocArenas();

}  // namespace longview::server
