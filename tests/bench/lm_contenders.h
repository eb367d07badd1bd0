// Sequences of a language model about to decode, with the projection cache or a full one, on the
// host or on a device: what lm_decode_bench and cuda_decode_bench time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/dense/compute.h"
#include "models/generation/decoder/cached_sequence.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/transformer_ls/config.h"
#include "tests/bench/full_decoder.h"
#include "tests/bench/naive_lm.h"

namespace longview::bench {

struct DecodeCase {
  int64_t context = 0;  // Tokens of each sequence; a multiple of 64.
  int batch = 0;
  std::string dtype;

  std::string Text() const;
};

// The facts that a step's bytes follow from. Borrows the configuration.
struct DecodedModel {
  const models::LsLmConfig& config;
  models::Compute compute;
  kernels::DType blocks;  // Type of caches.
  bool int8 = false;      // Whether linears of layers are.

  double ElementBytes() const;
  // Bytes of the linears.
  double WeightBytes() const;
  // Bytes of a key and a value, all layers and heads.
  double RowBytes() const;
  // The error of logits that a right step may have, of the largest.
  double MostError() const {
    if (int8) return 0.1;
    return compute == models::Compute::kFp32 ? 1e-4 : 3e-2;
  }
};

// Sequence `index` of a contender, with its rows.
using MakeSequence = std::function<kernels::CacheSequence(kernels::ProjectionCache*, int index)>;
// Random ones on the host, seeded with their index.
MakeSequence RandomOnHost(const DecodeCase& what);

// Used by one thread.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual const char* name() const = 0;
  virtual Remembered remembered() const = 0;
  virtual const kernels::ProjectionCache& cache() const = 0;
  virtual const kernels::CacheSequence& sequence(int index) const = 0;
  // The logits of all sequences, [batch, V]. Aborts on errors.
  virtual std::vector<float> Step() = 0;
  // Bytes the first step must read: linears, tables of positions, the rows that queries see.
  virtual double read_bytes() const = 0;
};

class Projections final : public Contender {
 public:
  // Borrows the decoder, of which one is made at a time.
  Projections(models::ForwardDecoder& decoder, const DecodedModel& model, const DecodeCase& what,
              const MakeSequence& make);
  ~Projections() override { decoder_.set_times(nullptr); }

  const char* name() const override { return "projection"; }
  Remembered remembered() const override { return Remembered::kProjections; }
  const kernels::ProjectionCache& cache() const override { return decoder_.projection_cache(); }
  const kernels::CacheSequence& sequence(int index) const override {
    return sequences_[index]->cache();
  }
  std::vector<float> Step() override;
  double read_bytes() const override;

  // Bytes of the sequences beside rows and full caches; how many there are.
  void PrintState() const;

  // From here on: seconds of steps by part. Parts of a device are waited for one by one.
  void TimeParts() { decoder_.set_times(&times_); }
  // Sum over all steps since.
  const models::RunTimes& times() const { return times_; }
  int steps() const { return steps_; }

 private:
  models::ForwardDecoder& decoder_;
  const DecodedModel model_;
  const DecodeCase case_;
  std::vector<std::unique_ptr<models::CachedSequence>> sequences_;
  std::vector<models::DecoderFeed> feeds_;
  double held_bytes_ = 0;  // The allocator's, before the first step.
  models::RunTimes times_;
  int steps_ = 0;
};

class FullCache final : public Contender {
 public:
  FullCache(std::unique_ptr<FullDecoder> full, const DecodedModel& model, const DecodeCase& what,
            const MakeSequence& make);

  const char* name() const override { return "full"; }
  Remembered remembered() const override { return Remembered::kEverything; }
  const kernels::ProjectionCache& cache() const override { return full_->cache(); }
  const kernels::CacheSequence& sequence(int index) const override {
    return sequences_[index]->cache();
  }
  std::vector<float> Step() override { return full_->Step(pointers_); }
  double read_bytes() const override;

 private:
  const std::unique_ptr<FullDecoder> full_;
  const DecodedModel model_;
  const DecodeCase case_;
  std::vector<std::unique_ptr<models::CachedSequence>> sequences_;
  std::vector<models::CachedSequence*> pointers_;
};

}  // namespace longview::bench
