// A plugin whose device is the host: memory is the host's, streams run at once, kernels are their
// block programs thread by thread. What is built on the plugin's table can be tested without a
// device, and every kernel against its definition.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/plugin_api.h"

namespace longview::kernels::cuda::testing {

// With the threads of a phase in rising or falling order: results must be the same.
const PluginApi& EmulatedPlugin(ThreadOrder order = ThreadOrder::kRising);

}  // namespace longview::kernels::cuda::testing
