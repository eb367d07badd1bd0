// The parts of the plugin's table, each defined in a file of its own beside its kernels.
#pragma once

namespace longview::kernels::cuda {

extern const struct EncoderApi kEncoderApi;      // Kernels of text encoders.
extern const struct MapsApi kMapsApi;            // Kernels of feature maps.
extern const struct OuterApi kOuterApi;          // The kernel of causal sums.
extern const struct PerformerApi kPerformerApi;  // Performer's kernels.
extern const struct PoolApi kPoolApi;            // Kernels of pooling.
extern const struct RowsApi kRowsApi;            // Row kernels.
extern const struct SamplingApi kSamplingApi;    // The kernel of sampling.
extern const struct SpanApi kSpanApi;            // Kernels of attention.
extern const struct TokenApi kTokenApi;          // For passes of generating models.

}  // namespace longview::kernels::cuda
