#include "kernels/pool/performer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/base/bfloat16.h"
#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

constexpr float kFloor = 1e-4f;

int Images(const PerformerCall& call) { return static_cast<int>(call.offsets.size()) - 1; }

void ReadRow(const PerformerCall& call, const void* data, int64_t row, int head, float* out) {
  const int64_t first = row * call.row_stride + int64_t{head} * call.width;
  for (int d = 0; d < call.width; ++d) {
    out[d] = call.dtype == DType::kFloat32
                 ? static_cast<const float*>(data)[first + d]
                 : BFloat16ToFloat(static_cast<const uint16_t*>(data)[first + d]);
  }
}

// c x . W_i of every feature; returns the largest.
float Project(const PerformerCall& call, const float* x, float* out) {
  const float scale = 1.0f / std::sqrt(std::sqrt(static_cast<float>(call.width)));
  float top = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < call.features; ++i) {
    const float* w = call.projection + int64_t{i} * call.width;
    float sum = 0;
    for (int d = 0; d < call.width; ++d) sum += x[d] * w[d];
    out[i] = scale * sum;
    top = std::max(top, out[i]);
  }
  return top;
}

// The projections become features.
void Features(const PerformerCall& call, const float* x, float top, float* phi) {
  float squares = 0;
  for (int d = 0; d < call.width; ++d) squares += x[d] * x[d];
  const float shift = squares / (2 * std::sqrt(static_cast<float>(call.width))) + top;
  const float norm = 1.0f / std::sqrt(static_cast<float>(call.features));
  for (int i = 0; i < call.features; ++i) phi[i] = norm * (std::exp(phi[i] - shift) + kFloor);
}

// A thread's scratch for one head of one image.
struct HeadScratch {
  float* x;     // [width]
  float* phi;   // [features]
  float* sum;   // [features] of phi(k)
  float* sums;  // [features, width] of phi(k)^T v
};

size_t HeadFloats(const PerformerCall& call) {
  return call.width + 2 * size_t{1} * call.features + size_t{1} * call.features * call.width;
}

HeadScratch Carve(const PerformerCall& call, const Workspace& workspace, int thread) {
  auto* at = reinterpret_cast<float*>(workspace.thread_base + thread * workspace.thread_stride);
  HeadScratch scratch;
  scratch.x = at;
  scratch.phi = scratch.x + call.width;
  scratch.sum = scratch.phi + call.features;
  scratch.sums = scratch.sum + call.features;
  return scratch;
}

void AddKeys(const PerformerCall& call, int image, int head, float top, const HeadScratch& s) {
  std::fill_n(s.sum, call.features, 0.0f);
  std::fill_n(s.sums, int64_t{call.features} * call.width, 0.0f);
  for (int64_t row = call.offsets[image]; row < call.offsets[image + 1]; ++row) {
    ReadRow(call, call.k, row, head, s.x);
    Project(call, s.x, s.phi);
    Features(call, s.x, top, s.phi);
    ReadRow(call, call.v, row, head, s.x);
    for (int i = 0; i < call.features; ++i) {
      s.sum[i] += s.phi[i];
      float* sums = s.sums + int64_t{i} * call.width;
      for (int d = 0; d < call.width; ++d) sums[d] += s.phi[i] * s.x[d];
    }
  }
}

void WriteQuery(const PerformerCall& call, int64_t row, int head, const HeadScratch& s) {
  ReadRow(call, call.q, row, head, s.x);
  const float top = Project(call, s.x, s.phi);
  Features(call, s.x, top, s.phi);
  float weight = 0;
  std::fill_n(s.x, call.width, 0.0f);
  for (int i = 0; i < call.features; ++i) {
    weight += s.phi[i] * s.sum[i];
    const float* sums = s.sums + int64_t{i} * call.width;
    for (int d = 0; d < call.width; ++d) s.x[d] += s.phi[i] * sums[d];
  }
  const int64_t first = row * call.out_row_stride + int64_t{head} * call.width;
  for (int d = 0; d < call.width; ++d) {
    const float value = s.x[d] / weight;
    if (call.dtype == DType::kFloat32) {
      static_cast<float*>(call.out)[first + d] = value;
    } else {
      static_cast<uint16_t*>(call.out)[first + d] = FloatToBFloat16(value);
    }
  }
}

// Hands (image, head) pairs out to the pool's threads.
template <typename Body>
void ForEachHead(const PerformerCall& call, const ParallelFor& pool, Body&& body) {
  std::atomic<int> next{0};
  const int count = Images(call) * call.heads;
  RunOnThreads(pool, [&](int thread) {
    for (int i = next++; i < count; i = next++) body(thread, i / call.heads, i % call.heads);
  });
}

}  // namespace

WorkspaceBytes MeasurePerformer(const PerformerCall& call) {
  return {size_t{1} * Images(call) * call.heads * sizeof(float), HeadFloats(call) * sizeof(float)};
}

void RunPerformer(const PerformerCall& call, const Workspace& workspace, const ParallelFor& pool) {
  KERNEL_CHECK(!call.offsets.empty() && call.heads >= 1 && call.width >= 1 && call.features >= 1);
  auto* tops = reinterpret_cast<float*>(workspace.shared);  // [images, heads]
  ForEachHead(call, pool, [&](int thread, int image, int head) {
    const HeadScratch s = Carve(call, workspace, thread);
    float top = -std::numeric_limits<float>::infinity();
    for (int64_t row = call.offsets[image]; row < call.offsets[image + 1]; ++row) {
      ReadRow(call, call.k, row, head, s.x);
      top = std::max(top, Project(call, s.x, s.phi));
    }
    tops[image * call.heads + head] = top;
  });
  ForEachHead(call, pool, [&](int thread, int image, int head) {
    const HeadScratch s = Carve(call, workspace, thread);
    // One shift for all heads of an image, as published: every head's keys were projected before.
    const float* of_image = tops + image * call.heads;
    AddKeys(call, image, head, *std::max_element(of_image, of_image + call.heads), s);
    for (int64_t row = call.offsets[image]; row < call.offsets[image + 1]; ++row) {
      WriteQuery(call, row, head, s);
    }
  });
}

}  // namespace longview::kernels
