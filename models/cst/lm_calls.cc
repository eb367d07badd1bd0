#include "models/cst/lm_calls.h"

namespace longview::models {

kernels::Source CstBlocksKind(const CstContext& context) {
  kernels::Source source;
  source.dtype = context.block_type();
  source.layout = kernels::Layout::kPaged;
  source.kv_heads = context.config->heads;
  return source;
}

void MakePagedTokenCall(const CstContext& context, const CstLayer* layer, const CstBuffers& buffers,
                        const kernels::Source& cached, bool fresh, CstCall& call) {
  MakeTokenCall(context, layer, buffers, call);
  // Zero tokens first, then positions in order: blocks are older than the pass's rows.
  const kernels::Source rows = call.sources.front();
  call.sources.erase(call.sources.begin());
  call.sources.push_back(cached);
  if (fresh) call.sources.push_back(rows);
  call.call.sources = call.sources;
}

void MakePagedSliceCall(const CstContext& context, const CstBuffers& buffers,
                        const kernels::Source& cached, CstCall& call) {
  MakeSliceCall(context, buffers, call);
  call.sources = {cached};
  call.call.sources = call.sources;
}

}  // namespace longview::models
