#include "kernels/cuda/graph_cache.h"

#include <algorithm>
#include <bit>

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

int BatchBucket(int sequences) {
  KERNEL_CHECK(sequences >= 1);
  if (sequences <= 8) return static_cast<int>(std::bit_ceil(static_cast<unsigned>(sequences)));
  const int step = sequences <= 64 ? 8 : 32;
  return (sequences + step - 1) / step * step;
}

GraphCache::GraphCache(const PluginApi& api, size_t limit) : api_(api), limit_(limit) {
  KERNEL_CHECK(limit >= 1);
}

GraphCache::~GraphCache() {
  for (const Kept& kept : graphs_) api_.destroy_graph(kept.graph);
}

Status GraphCache::Run(Stream* stream, const GraphKey& key, const std::function<Status()>& record) {
  const auto found = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&key](const Kept& kept) { return kept.key == key; });
  if (found == graphs_.end()) {
    if (const Status status = Record(stream, key, record); status != 0) return status;
  } else {
    std::rotate(found, found + 1, graphs_.end());
  }
  return api_.launch_graph(stream, graphs_.back().graph);
}

Status GraphCache::Record(Stream* stream, const GraphKey& key,
                          const std::function<Status()>& record) {
  if (const Status status = api_.begin_recording(stream); status != 0) return status;
  const Status recorded = record();
  Graph* graph = nullptr;
  // The recording is ended in any case: else the stream could run nothing any more.
  const Status ended = api_.end_recording(stream, &graph);
  if (recorded != 0 || ended != 0) {
    if (graph != nullptr) api_.destroy_graph(graph);
    return recorded != 0 ? recorded : ended;
  }
  if (graphs_.size() == limit_) {
    // What was launched before is still to run: a graph must outlive its launches.
    if (const Status status = api_.synchronize(stream); status != 0) {
      api_.destroy_graph(graph);
      return status;
    }
    api_.destroy_graph(graphs_.front().graph);
    graphs_.erase(graphs_.begin());
  }
  graphs_.push_back({key, graph});
  return 0;
}

}  // namespace longview::kernels::cuda
