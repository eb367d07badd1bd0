// The memory of sequences and documents of a generating Luna model, as states of kernels/cache: of
// one size however long the text is. A fork shares a state, and who reads on copies it first while
// others hold it.
//
//   sequence  the running sums of every layer (kernels/linear_attention)
//   document  what every decoder layer makes of it: rows that tokens write with, as
//             kernels::PackOuterRows lays them, and keys and values of the attention across
//
// Blocks of rows, which a cache wants too, hold nothing here.
#pragma once

#include <cstdint>

#include "kernels/cache/projection_cache.h"
#include "models/luna_decoder/config.h"

namespace longview::models {

// Rows that attention over a document keeps of each of its rows: a key and a value, or one for
// both.
inline int KeyParts(const LunaDecoderConfig& config) { return config.tied_kv ? 1 : 2; }

kernels::CacheShape LunaSequenceShape(const LunaDecoderConfig& config);
kernels::CacheShape LunaDocumentShape(const LunaDecoderConfig& config);

// In the first layer; others lie kernels::cuda::StateShift floats behind it. Addresses, of a
// device's memory too.
float* LunaSums(const kernels::ProjectionCache& cache, const kernels::CacheSequence& sequence);

struct LunaDocumentMemory {
  float* packed = nullptr;
  float* keys = nullptr;  // [rows of P, KeyParts * d], side by side.
};
LunaDocumentMemory LunaDocumentOf(const kernels::ProjectionCache& cache,
                                  const kernels::CacheSequence& document);

}  // namespace longview::models
