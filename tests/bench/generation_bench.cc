// The cost of generating beside the model: from a row of logits to pieces of text, per token.
//
//   generation_bench [--tokens 2000] [--sequences 32]
//
// The decoder answers with rows made before, so the time is that of choosing, stopping, text and
// bookkeeping. Every run is checked: as many tokens as asked, pieces that add up to the answer.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "models/generation/model/generator_model.h"

ABSL_FLAG(int, tokens, 2000, "tokens of every sequence");
ABSL_FLAG(int, sequences, 32, "generations in a step");

namespace longview::bench {
namespace {

using namespace models;  // NOLINT: a benchmark of one room.

class CountingSequence final : public DecoderSequence {
 public:
  explicit CountingSequence(int tokens) : tokens_(tokens) {}
  int tokens() const override { return tokens_; }
  std::unique_ptr<DecoderSequence> Fork() const override {
    return std::make_unique<CountingSequence>(tokens_);
  }
  void CachePrefix(uint64_t) override {}
  void Read(size_t tokens) { tokens_ += static_cast<int>(tokens); }

 private:
  int tokens_;
};

class FreeCosts final : public DecoderCosts {
 public:
  double StateBytes(int64_t, int64_t, int) const override { return 1; }
  double WorkspaceBytes(int64_t, int) const override { return 1; }
  double PrefillSeconds(int64_t) const override { return 1e-9; }
  double MultiplyAdds(int64_t) const override { return 0; }
  double DecodeSeconds(int64_t) const override { return 1e-9; }
  double StepSeconds() const override { return 1e-9; }
};

class ReadyDecoder final : public Decoder {
 public:
  explicit ReadyDecoder(int vocab) : vocab_(vocab), rows_(kRows) {
    std::minstd_rand random(1);
    std::normal_distribution<float> normal(0, 2);
    for (std::vector<float>& row : rows_) {
      for (int i = 0; i < vocab; ++i) row.push_back(normal(random));
    }
  }
  int vocab_size() const override { return vocab_; }
  int max_tokens() const override { return 1 << 20; }
  int prefill_alignment() const override { return 64; }
  const DecoderCosts& costs() const override { return costs_; }
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t>, uint64_t) override {
    return std::make_unique<CountingSequence>(0);
  }
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override {
    return std::make_unique<Step>(*this, feeds);
  }

 private:
  static constexpr size_t kRows = 64;

  class Step final : public DecoderStep {
   public:
    Step(const ReadyDecoder& decoder, std::span<const DecoderFeed> feeds)
        : decoder_(decoder), feeds_(feeds) {}
    bool Advance() override {
      for (const DecoderFeed& feed : feeds_) {
        static_cast<CountingSequence*>(feed.sequence)->Read(feed.tokens.size());
      }
      return false;
    }
    void Drop(int) override {}
    std::span<const float> Logits(int feed) const override {
      const auto place = static_cast<size_t>(feeds_[static_cast<size_t>(feed)].sequence->tokens());
      return decoder_.rows_[(place * 7 + static_cast<size_t>(feed)) % kRows];
    }

   private:
    const ReadyDecoder& decoder_;
    const std::span<const DecoderFeed> feeds_;
  };

  const int vocab_;
  FreeCosts costs_;
  std::vector<std::vector<float>> rows_;
};

class ByteLikeCodec final : public TextCodec {
 public:
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view) const override {
    return std::vector<int32_t>{1};
  }
  std::string Bytes(int32_t id) const override {
    return std::string(1, static_cast<char>('a' + id % 26));
  }
};

void Check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "generation_bench: %s\n", what);
  std::exit(1);
}

// Microseconds of this thread per token.
double Measure(int vocab, const GenerationOptions& options, int tokens, int sequences) {
  GeneratorParts parts;
  parts.decoder = std::make_unique<ReadyDecoder>(vocab);
  parts.codec = std::make_unique<ByteLikeCodec>();
  const std::unique_ptr<Model> model = *MakeGeneratorModel(std::move(parts));
  Request request;
  request.task = Task::kTextGeneration;
  request.text = "x";
  request.generation = options;
  request.generation->max_new_tokens = tokens;
  std::vector<std::unique_ptr<Item>> items;
  std::vector<std::unique_ptr<Generation>> generations;
  std::vector<StepGrant> grants;
  for (int i = 0; i < sequences; ++i) {
    items.push_back(*model->Prepare(request));
    generations.push_back(*model->Start(*items.back()));
    grants.push_back({generations.back().get(), 1});
  }
  std::vector<std::string> texts(generations.size());
  const std::clock_t start = std::clock();
  while (!generations[0]->done()) {
    const std::unique_ptr<Run> run = model->BeginStep(grants);
    while (run->Advance()) {
    }
    for (size_t i = 0; i < generations.size(); ++i) {
      for (Piece& piece : generations[i]->TakePieces()) texts[i] += piece.text;
      grants[i].prefill = generations[i]->need().prefill;
    }
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  for (size_t i = 0; i < generations.size(); ++i) {
    const Answer answer = *generations[i]->Take();
    Check(answer.usage.output_tokens == tokens, "tokens are missing");
    Check(answer.sequences[0].text == texts[i], "pieces do not add up");
  }
  return 1e6 * seconds / (static_cast<double>(tokens) * sequences);
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) {
  using longview::bench::Measure;
  absl::ParseCommandLine(argc, argv);
  const int tokens = absl::GetFlag(FLAGS_tokens);
  const int sequences = absl::GetFlag(FLAGS_sequences);
  longview::models::GenerationOptions greedy, sampled, narrow, scored;
  sampled.temperature = 0.8;
  sampled.seed = 1;
  narrow = sampled;
  narrow.top_k = 50;
  narrow.top_p = 0.95;
  narrow.stop = {"qqqqqqqqqqqq", "zzzzzzzzzzzz"};
  scored = narrow;
  scored.logprobs = 5;
  std::printf("%10s %10s %10s %22s %14s   us of CPU per token, %d at once\n", "vocabulary",
              "greedy", "sampled", "top-k, top-p, 2 stops", "+ 5 logprobs", sequences);
  for (const int vocab : {257, 50265}) {
    const int share = vocab > 1000 ? std::max(1, tokens / 50) : tokens;
    std::printf("%10d %10.2f %10.2f %22.2f %14.2f\n", vocab,
                Measure(vocab, greedy, share, sequences), Measure(vocab, sampled, share, sequences),
                Measure(vocab, narrow, share, sequences), Measure(vocab, scored, share, sequences));
  }
  return 0;
}
