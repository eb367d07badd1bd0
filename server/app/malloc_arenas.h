// Keeps the allocator's arenas few.
#pragma once

namespace longview::server {

// Limits the allocator to an arena for each core, and two at least. Every load of a model has
// threads of its own; by default these spread over eight arenas a core, and each arena keeps the
// memory at its top for good: malloc_trim gives back that of the main arena alone.
// MALLOC_ARENA_MAX in the environment counts instead. Call before there are other threads.
void LimitMallocArenas();

}  // namespace longview::server
