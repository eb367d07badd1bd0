#include "kernels/cuda/graph_cache.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

GraphCache::GraphCache(const PluginApi& api, size_t limit) : api_(api), limit_(limit) {
  KERNEL_CHECK(limit >= 1);
}

GraphCache::~GraphCache() {
  for (const Kept& kept : kept_) {
    if (kept.graph != nullptr) api_.destroy_graph(kept.graph);
  }
}

Status GraphCache::Run(Stream* stream, const GraphKey& key,
                       const std::function<Status()>& hand_over) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&key](const Kept& kept) { return kept.key == key; });
  if (found == kept_.end()) {
    if (const Status status = MakeRoom(stream); status != 0) return status;
    if (const Status status = hand_over(); status != 0) return status;
    kept_.push_back({key});
    return 0;
  }
  std::rotate(found, found + 1, kept_.end());
  Graph*& graph = kept_.back().graph;
  if (graph == nullptr) {
    if (const Status status = Record(stream, hand_over, &graph); status != 0) return status;
  }
  return api_.launch_graph(stream, graph);
}

Status GraphCache::Record(Stream* stream, const std::function<Status()>& hand_over, Graph** graph) {
  if (const Status status = api_.begin_recording(stream); status != 0) return status;
  const Status recorded = hand_over();
  Graph* made = nullptr;
  // The recording is ended in any case: else the stream could run nothing any more.
  const Status ended = api_.end_recording(stream, &made);
  if (recorded != 0 || ended != 0) {
    if (made != nullptr) api_.destroy_graph(made);
    return recorded != 0 ? recorded : ended;
  }
  *graph = made;
  return 0;
}

Status GraphCache::MakeRoom(Stream* stream) {
  if (kept_.size() < limit_) return 0;
  if (Graph* const graph = kept_.front().graph; graph != nullptr) {
    // Earlier launches may still be waiting, and a graph must outlive them.
    if (const Status status = api_.synchronize(stream); status != 0) return status;
    api_.destroy_graph(graph);
  }
  kept_.erase(kept_.begin());
  return 0;
}

}  // namespace longview::kernels::cuda
