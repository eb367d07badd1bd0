// Rows that one pass over a stack computes, and the plans of their attention: the host side of a
// pass, built once for all layers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/span/plan.h"
#include "models/decoder_stack/stack.h"
#include "models/generation/decoder/token_run.h"
#include "models/generation/passes/token_model.h"

namespace longview::models {

// The parts that all passes of one stack share. Borrowed, constant.
struct StackContext {
  const StackConfig* config = nullptr;
  const StackWeights* weights = nullptr;
  TokenFrame frame;
  int longest_document = 0;  // Number of its keys, which runs that are counted attend to.
};

// The document that sequences attend to beside their own tokens.
struct StackDocument {
  const kernels::CacheSequence* keys = nullptr;  // Null: it is counted.
  int32_t count = 0;                             // Number of keys.
};

struct StackGroup : RunGroup {
  std::map<int, kernels::Plan> plans;  // By the first layer of a window.
};

struct StackPassLayout {
  std::vector<TokenRun> runs;  // Sorted by group.
  std::array<StackGroup, 3> groups;
  int64_t rows = 0;
  int64_t wanted = 0;  // Rows of logits.
  // Parts of `rows` and of `wanted` whose linears take many rows: they come first. The rest
  // decodes, through the linears' path for few rows.
  int64_t many_rows = 0, many_wanted = 0;

  // Attention to documents: runs side by side over one document are one of its sequences.
  kernels::Plan cross;
  std::vector<StackDocument> documents;
};

// `runs` in any order; a sequence occurs once.
StackPassLayout LayOutStackPass(const StackContext& context, std::vector<TokenRun> runs);

}  // namespace longview::models
