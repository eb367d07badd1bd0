// Recorded steps: what a step hands to a stream is the same for all steps of like sizes, so it is
// recorded once and launched as a whole from then on.
//
// The first step of its sizes is handed over as it is and the second recorded: a device loads a
// kernel when it is first launched, which a recording may not wait for, and sizes that never come
// again are not worth a graph.
//
// Everything that decides launches and addresses must be in the key. Data that differs between
// steps is uploaded before (step_upload.h), to the same addresses.
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cuda/plugin_api.h"

namespace longview::kernels::cuda {

using GraphKey = std::vector<int64_t>;

class GraphCache {
 public:
  // Borrows the table. Keeps at most `limit` sizes; the one unused for longest goes first.
  GraphCache(const PluginApi& api, size_t limit);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Runs the step of this key. `hand_over` hands the step's work to the stream; it runs only if no
  // graph of the key is kept, and must allocate nothing and wait for nothing.
  Status Run(Stream* stream, const GraphKey& key, const std::function<Status()>& hand_over);

  // Count of remembered sizes, recorded or not.
  size_t sizes() const { return kept_.size(); }

 private:
  struct Kept {
    GraphKey key;
    Graph* graph = nullptr;  // From the second step on.
  };

  Status Record(Stream* stream, const std::function<Status()>& hand_over, Graph** graph);
  // Throws the size unused for longest away if there is no room for one more.
  Status MakeRoom(Stream* stream);

  const PluginApi& api_;
  size_t limit_;
  std::vector<Kept> kept_;  // Used last, last.
};

}  // namespace longview::kernels::cuda
