// One step of a model over its cache: which sequences read how many more tokens, where their new
// keys go, and which blocks attention reads. Made from the sequences in the order of their rows.
//
// In every layer, in this order:
//   prefill  write pages of the segments the chunk finishes; attend to pages, cached blocks (as
//            they were before the chunk) and the chunk's own rows; write the window rows
//   decode   write the window row; attend to pages and cached blocks; write pages
// and all attention of prefill before any window row of prefill: a block that falls out of one
// sequence's window may be another's in the same step. Decode and prefill do not mind each other.
//
// Used by the executor's thread; Write from it as well, it spreads work over `pool`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/cache/projection_cache.h"

namespace longview::kernels {

// Place of one row in the cache. Block -1: the row is not stored, no query will read it.
struct CachePlace {
  int32_t block = -1;
  int32_t slot = 0;
};

// Blocks of several sequences, for ProjectionCache::PagedSource. Sequence s (in order of Append)
// owns blocks[offsets[s]] .. blocks[offsets[s + 1] - 1]; the first holds slots from
// first_block[s] * 64 on.
struct CacheTable {
  std::vector<int32_t> blocks;
  std::vector<int32_t> offsets = {0};
  std::vector<int32_t> first_block;
};

class CacheStep {
 public:
  // Separate calls of a model, with separate rows. kResume is prefill that begins inside a block
  // and ends there or at its border; it goes the way of kDecode.
  enum Group : int { kPrefill = 0, kDecode = 1, kResume = 2 };

  explicit CacheStep(ProjectionCache* cache);
  ~CacheStep() { End(); }
  CacheStep(const CacheStep&) = delete;
  CacheStep& operator=(const CacheStep&) = delete;

  // `sequence` reads `ids` next. Makes room, copies an open block that others share, gives back
  // what falls out of reach. sequence->tokens() counts them at once.
  //
  // False: no memory, which cannot happen to who reserved SequenceBytes; the sequence must be
  // destroyed. REQUIRES: in one step every kPrefill Append comes after all others, and a
  // sequence occurs once. kDecode: one id. kResume: all ids belong into the window's open block.
  // kPrefill: sequence->tokens() is a multiple of kBlockSlots.
  bool Append(Group group, CacheSequence* sequence, std::span<const int32_t> ids);

  // Rows that attention reads: kDecode, kResume: the strip with this step's rows; kPrefill: the
  // window without and all other strips with them.
  const CacheTable& table(Group group, int strip) const { return parts_[group][strip].table; }

  // Places of this step's rows, in order of Append: one per token for the window (strip 0); for
  // pages one per rank of every segment that the step finishes.
  std::span<const CachePlace> places(Group group, int strip) const {
    return parts_[group][strip].places;
  }

  // Ends the step, also one that was given up: forgets tables and places, gives back the blocks
  // that were held because the step might still read them. The next Append begins another step.
  void End();

 private:
  struct Part {
    CacheTable table;
    std::vector<CachePlace> places;
  };

  bool Extend(Group group, CacheSequence* sequence, int strip, int64_t tokens);
  int32_t TakeBlock(Group group, int strip);
  void AddPlaces(const BlockList& list, int64_t before, int64_t after,
                 std::vector<CachePlace>* places) const;

  ProjectionCache* cache_;
  std::array<std::vector<Part>, 3> parts_;  // [group][strip]
  std::vector<int32_t> pinned_;  // Window blocks that prefill dropped and may still read.
  BlockList before_;             // Scratch of Append.
  bool prefilling_ = false;
};

}  // namespace longview::kernels
