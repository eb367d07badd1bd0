#include "models/vil/block.h"

#include <algorithm>

#include "models/parallel.h"

namespace longview::models {
namespace {

// The steps of one block over one batch.
class Block {
 public:
  Block(const VilContext& context, size_t stage, int block, const VilStagePlan& plan,
        const VilBuffers& buffers, EncoderTimes* times)
      : context_(context),
        index_(stage),
        number_(block),
        stage_(context.config->stages[stage]),
        weights_(context.weights->stages[stage].blocks[block]),
        sizes_(context.weights->stages[stage].sizes),
        plan_(plan),
        buffers_(buffers),
        kernels_(ChooseRowKernels(context.compute)),
        x_(buffers.x[stage % 2]),
        width_(stage_.width),
        row_bytes_(width_ * ElementBytes(context.compute)),
        linears_(times ? &times->linears : nullptr),
        attention_(times ? &times->attention : nullptr),
        rest_(times ? &times->rest : nullptr) {}

  void Run() {
    ProjectTokens();
    if (weights_.global_query) ProjectGlobals();
    Attend();
    Finish();
  }

 private:
  template <typename Body>
  void EachRow(int64_t count, Body&& body) const {
    ParallelRanges(*context_.pool, count, 8, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) body(i);
    });
  }

  PanelOutput Multiply(const DenseLayer& layer, const void* input, int panel) const {
    const Stopwatch watch(linears_);
    return layer.linear.Panel(input, panel);
  }

  // LN of rows row .. row + used, into `out`.
  void NormRows(const Norm& norm, int64_t row, int64_t used, std::byte* out) const {
    const Stopwatch watch(rest_);
    EachRow(used, [&](long i) {
      kernels_.norm(x_ + (row + i) * width_, norm.view(), width_, out + i * row_bytes_);
    });
  }

  // Rows of y with the layer's bias, to out + i * stride for row i.
  void KeepRows(const PanelOutput& y, const DenseLayer& layer, int64_t used, std::byte* out) const {
    const Stopwatch watch(rest_);
    const int64_t bytes = layer.out() * ElementBytes(context_.compute);
    EachRow(used, [&](long i) {
      kernels_.bias_copy(static_cast<std::byte*>(y.data()) + i * bytes, layer.bias.data(),
                         layer.out(), out + i * bytes);
    });
  }

  void AddRows(const PanelOutput& y, const DenseLayer& layer, int64_t row, int64_t used) const {
    const Stopwatch watch(rest_);
    EachRow(used, [&](long i) {
      if (weights_.global_out && IsGlobal(row + i)) return;
      kernels_.residual_add(x_ + (row + i) * width_,
                            static_cast<std::byte*>(y.data()) + i * row_bytes_, layer.bias.data(),
                            width_, nullptr);
    });
  }

  template <typename Use>
  void EachPanel(int64_t rows, Use&& use) const {
    for (int64_t row = 0; row < rows;) {
      const int panel = NextPanel(sizes_, rows - row);
      const int64_t used = rows - row < panel ? rows - row : panel;
      use(row, used, panel);
      row += used;
    }
  }

  bool IsGlobal(int64_t row) const {
    for (const VilTokens& image : plan_.images) {
      if (row >= image.row0 && row < image.row0 + stage_.globals) return true;
    }
    return false;
  }

  void ProjectTokens();
  void ProjectGlobals();
  void FinishGlobals();
  void Attend();
  void RunRandomFeatures();
  void RunSpans(const kernels::Plan& plan, bool separate_globals);
  void Finish();

  const VilContext& context_;
  const size_t index_;
  const int number_;
  const VilStage& stage_;
  const VilBlock& weights_;
  const PanelSizes sizes_;
  const VilStagePlan& plan_;
  const VilBuffers& buffers_;
  const RowKernels& kernels_;
  float* const x_;
  const int64_t width_;
  const int64_t row_bytes_;
  double* const linears_;
  double* const attention_;
  double* const rest_;
};

// q, k, v of every token; the normalised rows too where something else reads them.
void Block::ProjectTokens() {
  const bool keep = stage_.attention == VilAttention::kReduction;
  const DenseLayer& qkv = *weights_.qkv;
  const int64_t out_bytes = qkv.out() * ElementBytes(context_.compute);
  EachPanel(plan_.rows, [&](int64_t row, int64_t used, int panel) {
    std::byte* input = keep ? buffers_.normed + row * row_bytes_ : buffers_.panel;
    NormRows(weights_.attention_norm, row, used, input);
    KeepRows(Multiply(qkv, input, panel), qkv, used, buffers_.qkv + row * out_bytes);
    // The global rows' own keys and values are of every token.
    if (!weights_.global_key_value) return;
    const DenseLayer& kv = *weights_.global_key_value;
    KeepRows(Multiply(kv, input, panel), kv, used, buffers_.global_kv + row * 2 * row_bytes_);
  });
}

void Block::ProjectGlobals() {
  const DenseLayer& query = *weights_.global_query;
  for (const VilTokens& image : plan_.images) {
    for (int64_t done = 0; done < stage_.globals;) {
      const int panel = NextPanel(query.linear.sizes(), stage_.globals - done);
      const int64_t used = std::min<int64_t>(panel, stage_.globals - done);
      NormRows(weights_.attention_norm, image.row0 + done, used, buffers_.panel);
      KeepRows(Multiply(query, buffers_.panel, panel), query, used,
               buffers_.global_q + (image.row0 + done) * row_bytes_);
      done += used;
    }
  }
}

void Block::RunSpans(const kernels::Plan& plan, bool separate_globals) {
  if (plan.items.empty()) return;
  const VilCall call(context_, index_, plan_, number_, buffers_, separate_globals);
  const kernels::WorkspaceBytes bytes = Measure(plan, call.call(), context_.isa);
  RunPlan(plan, call.call(), kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool,
          context_.isa);
}

void Block::RunRandomFeatures() {
  kernels::PerformerCall call = MakePerformerCall(context_, stage_, plan_, buffers_);
  call.projection = weights_.features.data();
  const kernels::WorkspaceBytes bytes = MeasurePerformer(call);
  RunPerformer(call, kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool);
}

void Block::Attend() {
  const Stopwatch watch(attention_);
  if (stage_.attention == VilAttention::kLinformer) {
    ProjectByPositions(context_, stage_, weights_, plan_, buffers_);
  } else if (stage_.attention == VilAttention::kReduction) {
    ProjectByReduction(context_, stage_, weights_, plan_, buffers_);
  }
  if (stage_.attention == VilAttention::kPerformer) RunRandomFeatures();
  RunSpans(plan_.attention, false);
  RunSpans(plan_.globals, true);
}

// x += z Wo; x += W2 gelu(W1 LN(x)), panel by panel while it is in cache.
void Block::Finish() {
  if (weights_.global_out) FinishGlobals();
  const DenseLayer& expand = *weights_.expand;
  const int64_t expanded_bytes = expand.out() * ElementBytes(context_.compute);
  EachPanel(plan_.rows, [&](int64_t row, int64_t used, int panel) {
    AddRows(Multiply(*weights_.out, buffers_.z + row * row_bytes_, panel), *weights_.out, row,
            used);
    NormRows(weights_.mlp_norm, row, used, buffers_.panel);
    const PanelOutput hidden = Multiply(expand, buffers_.panel, panel);
    {
      const Stopwatch watch(rest_);
      EachRow(used, [&](long i) {
        kernels_.bias_act(static_cast<std::byte*>(hidden.data()) + i * expanded_bytes,
                          expand.bias.data(), expand.out(), Activation::kGelu);
      });
    }
    const PanelOutput y = Multiply(*weights_.contract, hidden.data(), panel);
    const Stopwatch watch(rest_);
    EachRow(used, [&](long i) {
      kernels_.residual_add(x_ + (row + i) * width_,
                            static_cast<std::byte*>(y.data()) + i * row_bytes_,
                            weights_.contract->bias.data(), width_, nullptr);
    });
  });
}

void Block::FinishGlobals() {
  const DenseLayer& out = *weights_.global_out;
  for (const VilTokens& image : plan_.images) {
    for (int64_t done = 0; done < stage_.globals;) {
      const int panel = NextPanel(out.linear.sizes(), stage_.globals - done);
      const int64_t used = std::min<int64_t>(panel, stage_.globals - done);
      const int64_t row = image.row0 + done;
      const PanelOutput y = Multiply(out, buffers_.z + row * row_bytes_, panel);
      EachRow(used, [&](long i) {
        kernels_.residual_add(x_ + (row + i) * width_,
                              static_cast<std::byte*>(y.data()) + i * row_bytes_, out.bias.data(),
                              width_, nullptr);
      });
      done += used;
    }
  }
}

}  // namespace

void RunVilBlock(const VilContext& context, size_t stage, int block, const VilStagePlan& plan,
                 const VilBuffers& buffers, EncoderTimes* times) {
  Block(context, stage, block, plan, buffers, times).Run();
}

}  // namespace longview::models
