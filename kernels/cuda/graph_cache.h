// Recorded steps: what one decode step hands to a stream is the same for all steps of like size, so
// it is recorded once and launched as a whole from then on.
//
// The first step of a size is handed over as it is and the second recorded: a device loads a kernel
// when it is first launched, which a recording may not wait for, and a size that never comes again
// is not worth a graph.
//
// A step's size is its number of sequences, rounded up (BatchBucket), and the capacity of its plans
// (PlanCapacity rounded up): everything that decides launches and addresses must be in the key.
// Data that differs between steps is uploaded before (step_upload.h), to the same addresses.
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/span/plan_image.h"

namespace longview::kernels::cuda {

// Sequences that a recorded step has room for: powers of two up to 8, then multiples of 8 up to 64,
// then multiples of 32.
int BatchBucket(int sequences);

struct GraphKey {
  int32_t bucket = 0;
  int32_t entries = 0;    // Table entries that a row reads.
  int32_t extra = 0;      // Rows that do what others do not.
  PlanCapacity capacity;  // Rounded up.
  bool operator==(const GraphKey&) const = default;
};

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
