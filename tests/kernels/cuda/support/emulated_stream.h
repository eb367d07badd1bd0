// Streams, events and graphs of a device that is the host.
//
// Prompt streams do their work when it is handed over. Late ones keep it and do it when somebody
// waits for it, or earlier, as a seeded schedule has it: each of them is hasty, lazy or in between,
// so that over a few seeds every order comes up that events and waiting hosts allow. What is only
// right in the order in which it was handed over then shows.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/cuda/plugin_api.h"

namespace longview::kernels::cuda::testing {

// Hands work to a stream. Late work finds its memory as it then is.
Status HandOver(Stream* stream, std::function<void()> work);

// Fills the table's streams, events and graphs, with prompt streams.
void FillStreams(PluginApi& api);

// Makes the streams that the table creates late ones. `seed` is of all late streams created until
// the next call; they belong to one thread.
void MakeStreamsLate(PluginApi& api, uint32_t seed);

}  // namespace longview::kernels::cuda::testing
