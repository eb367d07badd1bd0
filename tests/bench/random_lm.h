// A Transformer-LS language model of the published shape (enwik8-large: d 512, 8 heads, f 2048,
// w 512, l 16, r 1, V 208) with random weights, for benchmarks. Schedule `paper`.
#pragma once

#include <memory>
#include <string>

#include "models/dense/weight_format.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/transformer_ls/model.h"

namespace longview::bench {

// The model of such a decoder.
inline const models::LsLm& LmOf(const models::ForwardDecoder& decoder) {
  return static_cast<const models::LsLm&>(decoder.model());
}

inline constexpr int kLmWidth = 512, kLmWindow = 512, kLmSegment = 16;

// Writes config.json and model.safetensors (fp32); 30 layers make the published model.
void WriteRandomLm(const std::string& directory, int layers);

// The decoder of such a directory. `cache_bytes` of state can be held. Aborts with a message.
std::unique_ptr<models::ForwardDecoder> LoadLm(const std::string& directory,
                                               models::WeightFormat format, int max_tokens,
                                               double cache_bytes);

// LoadLm on a device. If the device has no room: null, and why in `reason`.
std::unique_ptr<models::ForwardDecoder> LoadLmOn(std::unique_ptr<models::Device> device,
                                                 const std::string& directory,
                                                 models::Compute compute, int max_tokens,
                                                 double cache_bytes, std::string* reason);

}  // namespace longview::bench
