// Which rows one pass over a stack computes, and what their attention sees: the host side of a
// pass, built once for all layers.
//
// Rows come in three groups: chunks of prefill that begin at a block of the cache (their keys are
// read from the pass's own rows), pieces of prefill that begin inside one (their keys are written
// to the cache first), single tokens of decoding (likewise). The first two agree in bits.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/span/plan.h"
#include "models/stack/context.h"

namespace longview::models {

// What sequences attend to beside their own tokens.
struct StackDocument {
  const kernels::CacheSequence* keys = nullptr;
  int32_t count = 0;  // Of keys.
};

// Tokens one sequence reads in a pass.
struct StackRun {
  kernels::CacheStep::Group group = kernels::CacheStep::kPrefill;
  kernels::CacheSequence* sequence = nullptr;
  const StackDocument* document = nullptr;  // With an encoder.
  std::span<const int32_t> ids;
  int64_t start = 0;        // Position of the first.
  int64_t wanted = 0;       // Of the last so many rows logits are wanted,
  float* logits = nullptr;  // here: [wanted, V].
  int64_t row0 = 0;         // Set by the layout.
};

struct StackGroup {
  kernels::CacheStep::Group group = kernels::CacheStep::kPrefill;
  int run0 = 0, runs = 0;
  int64_t row0 = 0, rows = 0;
  std::map<int, kernels::Plan> plans;  // By the first layer of a window.
};

struct StackPassLayout {
  // In the order of rows.
  static constexpr std::array<kernels::CacheStep::Group, 3> kOrder = {
      kernels::CacheStep::kPrefill, kernels::CacheStep::kResume, kernels::CacheStep::kDecode};

  std::vector<StackRun> runs;  // Sorted by group.
  std::array<StackGroup, 3> groups;
  int64_t rows = 0;
  int64_t wanted = 0;  // Rows of logits.
  // Of both, those that go through panels: they come first. The rest, decoding's, goes through
  // second packs, where the weights have them.
  int64_t panel_rows = 0, panel_wanted = 0;

  // Attention to documents: runs side by side over one document are one of its sequences.
  kernels::Plan cross;
  std::vector<const StackDocument*> documents;
};

// `runs` in any order; a sequence occurs once.
StackPassLayout LayOutStackPass(const StackContext& context, std::vector<StackRun> runs);

}  // namespace longview::models
