// Longformer's layers run piece by piece: the same bits as in one piece, in less memory.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "models/directory/model_directory.h"
#include "models/encoder/host_pass.h"
#include "models/encoder/model.h"
#include "models/longformer/pass.h"
#include "models/parallel.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

constexpr int64_t kOnePiece = 1 << 20;

struct Loaded {
  ModelDirectory directory;
  LongformerConfig config;
  LongformerWeights weights;
};

Loaded Load(Compute compute) {
  const GoldenCase golden("global_patterns");
  Loaded loaded;
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(golden.directory());
  EXPECT_TRUE(directory.ok() && OpenWeights(*directory).ok()) << directory.status();
  loaded.directory = *std::move(directory);
  absl::StatusOr<LongformerConfig> config = ReadTextConfig<ParseLongformerConfig>(loaded.directory);
  EXPECT_TRUE(config.ok()) << config.status();
  loaded.config = *config;
  auto weights = LoadLongformerWeights(loaded.config, loaded.directory.checkpoint, "test", compute);
  EXPECT_TRUE(weights.ok()) << weights.status();
  loaded.weights = *std::move(weights);
  return loaded;
}

EncoderSequence Document(const LongformerConfig& config, int tokens, std::vector<int> globals) {
  std::mt19937 random(static_cast<uint32_t>(tokens));
  std::uniform_int_distribution<int32_t> id(0, config.vocab - 1), place(0, config.positions - 1);
  EncoderSequence document;
  for (int t = 0; t < tokens; ++t) {
    document.ids.push_back(id(random));
    document.positions.push_back(place(random));
    document.roles.push_back(t % 97 == 13 ? kernels::kMaskedToken : kernels::kLocalToken);
  }
  for (const int global : globals) {
    document.roles[static_cast<size_t>(global)] = kernels::kGlobalToken;
  }
  document.wanted.resize(static_cast<size_t>(tokens));
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

// Documents of several pieces, between some that share one: without global tokens, with few that
// are folded, with many that are not.
std::vector<EncoderSequence> Documents(const LongformerConfig& config) {
  std::vector<int> many;
  for (int t = 3; t < 1400; t += 11) many.push_back(t);
  return {Document(config, 40, {0}),         Document(config, 1, {}),
          Document(config, 1500, {0, 1300}), Document(config, 130, {5, 7}),
          Document(config, 1411, many),      Document(config, 700, {}),
          Document(config, 64, {63})};
}

struct Encoded {
  std::vector<float> rows;
  size_t bytes;
};

Encoded Encode(const Loaded& model, Compute compute, const std::vector<EncoderSequence>& documents,
               int64_t piece_rows, int dropped = -1) {
  const TorchParallelFor pool;
  const LongformerContext context(model.config, model.weights, compute, pool);
  std::vector<const EncoderSequence*> sequences;
  for (const EncoderSequence& document : documents) sequences.push_back(&document);
  ScratchPool scratch;
  HostPass pass(std::make_unique<LongformerPass>(model.config, model.weights, compute, sequences,
                                                 context.tile_rows(), piece_rows),
                context, scratch, nullptr);
  Encoded encoded;
  encoded.bytes = pass.scratch_bytes();
  bool more = pass.Advance();
  if (dropped >= 0) pass.Drop(dropped);
  while (more) more = pass.Advance();
  for (int i = 0; i < static_cast<int>(documents.size()); ++i) {
    if (i == dropped) continue;
    const float* rows = pass.Rows(i);
    const auto count = documents[static_cast<size_t>(i)].wanted.size();
    encoded.rows.insert(encoded.rows.end(), rows,
                        rows + count * static_cast<size_t>(model.config.width));
  }
  return encoded;
}

class PiecesTest : public ::testing::TestWithParam<Compute> {};

TEST_P(PiecesTest, HaveTheBitsOfTheWhole) {
  const Loaded model = Load(GetParam());
  const std::vector<EncoderSequence> documents = Documents(model.config);
  const Encoded whole = Encode(model, GetParam(), documents, kOnePiece);
  const Encoded pieces = Encode(model, GetParam(), documents, 1);
  EXPECT_EQ(whole.rows, pieces.rows);
  EXPECT_LT(pieces.bytes, whole.bytes);
}

TEST_P(PiecesTest, HaveTheBitsOfTheWholeWhereFewRowsAreWanted) {
  const Loaded model = Load(GetParam());
  std::vector<EncoderSequence> documents = Documents(model.config);
  for (EncoderSequence& document : documents) document.wanted = {document.tokens() / 2};
  EXPECT_EQ(Encode(model, GetParam(), documents, kOnePiece).rows,
            Encode(model, GetParam(), documents, 1).rows);
}

TEST_P(PiecesTest, GoOnWithoutThoseThatLeave) {
  const Loaded model = Load(GetParam());
  const std::vector<EncoderSequence> documents = Documents(model.config);
  for (int dropped = 0; dropped < static_cast<int>(documents.size()); ++dropped) {
    std::vector<EncoderSequence> others = documents;
    others.erase(others.begin() + dropped);
    EXPECT_EQ(Encode(model, GetParam(), documents, 1, dropped).rows,
              Encode(model, GetParam(), others, kOnePiece).rows)
        << dropped;
  }
}

INSTANTIATE_TEST_SUITE_P(, PiecesTest, ::testing::Values(Compute::kFp32, Compute::kBf16),
                         [](const auto& info) {
                           return info.param == Compute::kFp32 ? "Fp32" : "Bf16";
                         });

// The memory that a document takes beside its residual stream does not grow with it.
TEST(PieceMemoryTest, GrowsByTheResidualStream) {
  const Loaded model = Load(Compute::kFp32);
  const auto bytes = [&](int tokens) {
    return static_cast<double>(
        Encode(model, Compute::kFp32, {Document(model.config, tokens, {})}, 1).bytes);
  };
  const double grown = (bytes(6000) - bytes(3000)) / 3000;
  EXPECT_LE(grown, 1.02 * model.config.width * sizeof(float));
}

}  // namespace
}  // namespace longview::models
