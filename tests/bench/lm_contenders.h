// Random sequences of a language model about to decode, with the projection cache or a full one:
// what lm_decode_bench times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/transformer_ls/decoder.h"
#include "tests/bench/full_cache_decoder.h"
#include "tests/bench/naive_lm.h"

namespace longview::bench {

inline constexpr int32_t kNextId = 1;  // What every sequence reads in every step.

struct DecodeCase {
  int64_t context = 0;  // Tokens of each sequence; a multiple of 64.
  int batch = 0;
  std::string dtype;

  std::string Text() const;
};

// Bytes of a key and a value, all layers and heads.
double RowBytes(const models::LsDecoder& decoder);

// Used by one thread. Borrows the decoder.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual const char* name() const = 0;
  virtual Remembered remembered() const = 0;
  virtual const kernels::ProjectionCache& cache() const = 0;
  virtual const kernels::CacheSequence& sequence(int index) const = 0;
  // The logits of all sequences, [batch, V]. Aborts on errors.
  virtual std::vector<float> Step() = 0;
  // What the first step must read: linears, tables of positions, the rows that queries see.
  virtual double read_bytes() const = 0;
};

class Projections final : public Contender {
 public:
  // One at a time.
  Projections(models::LsDecoder& decoder, const DecodeCase& what);
  ~Projections() override { decoder_.set_times(nullptr); }

  const char* name() const override { return "projection"; }
  Remembered remembered() const override { return Remembered::kProjections; }
  const kernels::ProjectionCache& cache() const override { return *decoder_.context().cache; }
  const kernels::CacheSequence& sequence(int index) const override { return *states_[index]; }
  std::vector<float> Step() override;
  double read_bytes() const override;

  // Bytes of the sequences: of the allocator before the first step, in closed form.
  double held_bytes() const { return held_bytes_; }
  double closed_form() const;

  // Of all steps, by part.
  const models::EncoderTimes& times() const { return times_; }
  int steps() const { return steps_; }

 private:
  models::LsDecoder& decoder_;
  const DecodeCase case_;
  std::vector<std::unique_ptr<models::CachedSequence>> sequences_;
  std::vector<const kernels::CacheSequence*> states_;
  std::vector<models::DecoderFeed> feeds_;
  double held_bytes_ = 0;
  models::EncoderTimes times_;
  int steps_ = 0;
};

class FullCache final : public Contender {
 public:
  // Sequences may grow to `longest` tokens.
  FullCache(const models::LsDecoder& decoder, const DecodeCase& what, int64_t longest);

  const char* name() const override { return "full"; }
  Remembered remembered() const override { return Remembered::kEverything; }
  const kernels::ProjectionCache& cache() const override { return full_.cache(); }
  const kernels::CacheSequence& sequence(int index) const override { return sequences_[index]; }
  std::vector<float> Step() override { return full_.Step(pointers_); }
  double read_bytes() const override;

 private:
  const models::LsDecoder& decoder_;
  const DecodeCase case_;
  FullCacheDecoder full_;
  std::vector<kernels::CacheSequence> sequences_;
  std::vector<kernels::CacheSequence*> pointers_;
};

}  // namespace longview::bench
