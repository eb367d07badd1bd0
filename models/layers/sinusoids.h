// fairseq's sinusoidal positions (SinusoidalPositionalEmbedding): row p holds the sines of p f_i,
// then the cosines, f_i = 10000^(-i / (h - 1)) for i < h = width / 2; an odd width ends with a
// zero. In float32 step by step, as the tables were made: double precision differs by 5e-4 at p =
// 16000. Thread-safe: a pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace longview::models {

// [rows, width]
std::vector<float> Sinusoids(int64_t rows, int64_t width);

}  // namespace longview::models
