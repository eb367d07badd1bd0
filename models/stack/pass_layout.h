// Which rows one pass over a stack computes, and what their attention sees: the host side of a
// pass, built once for all layers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "kernels/span/plan.h"
#include "models/generation/token_run.h"
#include "models/stack/context.h"

namespace longview::models {

// The document that a sequence attends to beside its own tokens.
struct StackDocument {
  const kernels::CacheSequence* keys = nullptr;
  int32_t count = 0;  // Number of keys.
};

struct StackGroup : RunGroup {
  std::map<int, kernels::Plan> plans;  // By the first layer of a window.
};

struct StackPassLayout {
  std::vector<TokenRun> runs;  // Sorted by group.
  std::array<StackGroup, 3> groups;
  int64_t rows = 0;
  int64_t wanted = 0;  // Rows of logits.
  // Those of both whose linears take many rows: they come first. The rest decodes, where linears
  // have a way of their own for few rows.
  int64_t many_rows = 0, many_wanted = 0;

  // Attention to documents: runs side by side over one document are one of its sequences.
  kernels::Plan cross;
  std::vector<const StackDocument*> documents;
};

// The document of a run's sequence; asked with an encoder only.
using DocumentOf = std::function<const StackDocument*(const TokenRun&)>;

// `runs` in any order; a sequence occurs once.
StackPassLayout LayOutStackPass(const StackContext& context, std::vector<TokenRun> runs,
                                const DocumentOf& document_of);

}  // namespace longview::models
