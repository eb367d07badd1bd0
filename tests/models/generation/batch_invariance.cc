#include "tests/models/generation/batch_invariance.h"

#include <utility>

namespace longview::models {

Request SampledRequest(std::vector<int32_t> ids, uint32_t seed, int samples, int tokens) {
  GenerationOptions options = NewTokens(tokens);
  options.temperature = 0.9;
  options.seed = seed;
  options.num_return_sequences = samples;
  options.logprobs = 2;
  options.ignore_eos = true;
  return IdsRequest(std::move(ids), options);
}

void ExpectPiece(const Piece& got, const Piece& want, double tolerance) {
  EXPECT_EQ(got.token_ids, want.token_ids);
  ASSERT_EQ(got.logprobs.size(), want.logprobs.size());
  for (size_t t = 0; t < want.logprobs.size(); ++t) {
    if (tolerance == 0) {
      EXPECT_EQ(got.logprobs[t].logprob, want.logprobs[t].logprob) << t;
    } else {
      EXPECT_NEAR(got.logprobs[t].logprob, want.logprobs[t].logprob, tolerance) << t;
    }
  }
}

void ExpectPieces(const std::vector<Piece>& got, const std::vector<Piece>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ExpectPiece(got[i], want[i], tolerance);
}

void ExpectBatchInvariance(Model& model, int requests, int samples, int prefill,
                           const RequestOf& request) {
  std::vector<Answer> alone;
  std::vector<Live> lives;
  for (int i = 0; i < requests; ++i) {
    alone.push_back(Generate(model, request(static_cast<uint32_t>(i), 1)));
    lives.push_back(StartOn(model, request(static_cast<uint32_t>(i), samples)));
  }
  std::vector<Live*> all;
  for (Live& live : lives) all.push_back(&live);
  while (!lives[0].generation->done()) StepOnce(model, all, prefill);
  for (int i = 0; i < requests; ++i) {
    SCOPED_TRACE(i);
    const absl::StatusOr<Answer> answer = Finish(model, lives[static_cast<size_t>(i)]);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const Piece& want = alone[static_cast<size_t>(i)].sequences[0];
    ExpectPiece(answer->sequences[0], want, 0);
    for (int other = 1; other < samples; ++other) {
      EXPECT_NE(answer->sequences[static_cast<size_t>(other)].token_ids, want.token_ids);
    }
  }
}

void ExpectADroppedDocumentHarmsNobody(Model& model, int advances, const RequestOf& request) {
  const Answer alone = Generate(model, request(1, 1));
  const double used = model.cache().used;
  {
    Live leaving = StartOn(model, request(0, 1)), staying = StartOn(model, request(1, 1));
    std::vector<StepGrant> grants;
    for (Live* live : {&leaving, &staying}) {
      grants.push_back({live->generation.get(), live->generation->need().prefill});
    }
    const std::unique_ptr<Run> run = model.BeginStep(grants);
    for (int i = 0; i < advances; ++i) ASSERT_TRUE(run->Advance()) << i;
    run->Drop(0);
    while (run->Advance()) {
    }
    leaving.generation.reset();
    const absl::StatusOr<Answer> answer = Finish(model, staying);
    ASSERT_TRUE(answer.ok()) << answer.status();
    ExpectPieces(answer->sequences, alone.sequences, 0);
  }
  EXPECT_EQ(model.cache().used, used);
}

}  // namespace longview::models
