// PlanBand against the definition of Longformer's local rows (Beltagy et al. 2020).
#include "kernels/span/band_planner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "tests/kernels/support/naive.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels {
namespace {

using testing::MakeCall;
using testing::NaiveRow;
using testing::RowsSource;
using testing::Tensor;

struct Case {
  std::string name;
  BandPattern pattern;
  std::vector<int> lengths;
  std::vector<std::vector<uint8_t>> roles;  // Per sequence, or empty.
  int Dk = 16;
  int Dv = 16;
};

std::vector<uint8_t> Roles(int tokens, std::vector<int> globals, std::vector<int> masked = {}) {
  std::vector<uint8_t> roles(tokens, kLocalToken);
  for (int g : globals) roles[g] = kGlobalToken;
  for (int m : masked) roles[m] = kMaskedToken;
  return roles;
}

// Keys of position i on head h: |i - j| within the window in steps of the dilation, local
// tokens only, then every global token.
std::vector<double> Expected(const Case& c, const std::vector<uint8_t>& roles, int tokens, int row0,
                             int i, int h, const Tensor& q, const Tensor& k, const Tensor& v,
                             double scale) {
  const auto role = [&](int j) { return roles.empty() ? uint8_t{kLocalToken} : roles[j]; };
  NaiveRow row;
  const int dilation = c.pattern.dilation.empty() ? 1 : c.pattern.dilation[h];
  if (role(i) == kMaskedToken) return row.Finish(v.dim());
  for (int j = 0; j < tokens; ++j) {
    const int steps = (j - i) / dilation;
    const bool reached = (j - i) % dilation == 0 && steps >= -c.pattern.window_left &&
                         steps <= c.pattern.window_right;
    const bool global = role(j) == kGlobalToken && (!c.pattern.causal_globals || j <= i);
    if ((reached && role(j) == kLocalToken) || global) {
      row.Add(scale * Dot(q, row0 + i, h, k, row0 + j, h), v, row0 + j, h);
    }
  }
  return row.Finish(v.dim());
}

void RunCase(const Case& c, DType dtype) {
  std::mt19937 random(17);
  int rows = 0;
  std::vector<BandSequence> batch;
  for (size_t s = 0; s < c.lengths.size(); ++s) {
    BandSequence sequence;
    sequence.row0 = rows;
    sequence.tokens = c.lengths[s];
    if (!c.roles.empty()) sequence.roles = c.roles[s];
    batch.push_back(sequence);
    rows += c.lengths[s];
  }
  const int heads = c.pattern.heads;
  const Tensor q = Tensor::Random(rows, heads, c.Dk, &random, dtype);
  const Tensor k = Tensor::Random(rows, heads, c.Dk, &random, dtype);
  const Tensor v = Tensor::Random(rows, heads, c.Dv, &random, dtype);
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.Dk));
  for (const Isa isa : testing::IsasToTest(dtype)) {
    SCOPED_TRACE(c.name + " " + std::string(IsaName(isa)));
    BandPattern pattern = c.pattern;
    pattern.tile_rows = TileRows(isa);
    const Plan plan = PlanBand(pattern, batch);
    Tensor out = Tensor::Random(rows, heads, c.Dv, &random, dtype);
    Call call = MakeCall(q, &out, scale);
    const std::vector<Source> sources(plan.sources.size(), RowsSource(k, v));
    call.sources = sources;
    testing::RunChecked(plan, call, isa, 2);
    for (size_t s = 0; s < batch.size(); ++s) {
      const std::vector<uint8_t> roles = c.roles.empty() ? std::vector<uint8_t>{} : c.roles[s];
      for (int i = 0; i < batch[s].tokens; ++i) {
        if (!roles.empty() && roles[i] == kGlobalToken) continue;
        for (int h = 0; h < heads; ++h) {
          const std::vector<double> want =
              Expected(c, roles, batch[s].tokens, batch[s].row0, i, h, q, k, v, scale);
          for (int d = 0; d < c.Dv; ++d) {
            ASSERT_NEAR(out.At(batch[s].row0 + i, h, d), want[d], testing::Tolerance(isa, dtype))
                << "sequence " << s << " position " << i << " head " << h << " d " << d;
          }
        }
      }
    }
  }
}

BandPattern Window(int left, int right, int heads = 2, std::vector<int> dilation = {}) {
  BandPattern pattern;
  pattern.heads = heads;
  pattern.window_left = left;
  pattern.window_right = right;
  pattern.dilation.assign(dilation.begin(), dilation.end());
  return pattern;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"one token", Window(4, 4), {1}, {}},
      {"one global token", Window(4, 4), {1}, {Roles(1, {0})}},
      {"one masked token", Window(4, 4), {1}, {Roles(1, {}, {0})}},
      {"ragged", Window(8, 8), {1, 8, 9, 17, 65, 200}, {}},
      {"window over everything", Window(500, 500), {131}, {}},
      {"window of self only", Window(0, 0), {70}, {}},
      {"causal", Window(20, 0), {150}, {}},
      {"asymmetric", Window(3, 30), {150}, {}},
      {"first token global", Window(16, 16), {100, 5}, {Roles(100, {0}), Roles(5, {0})}},
      {"globals at the ends and side by side",
       Window(5, 5),
       {120},
       {Roles(120, {0, 1, 2, 40, 44, 45, 46, 51, 119})}},
      {"unequal globals", Window(6, 6), {90, 90, 90}, {Roles(90, {}), Roles(90, {3}), {}}},
      {"masked holes", Window(7, 7), {140}, {Roles(140, {5}, {0, 6, 7, 8, 63, 64, 65, 139})}},
      {"a masked tail longer than a tile", Window(7, 7), {180}, {Roles(180, {}, {})}},
      {"dilation", Window(5, 5, 2, {3, 3}), {130}, {}},
      {"dilation per head", Window(4, 4, 4, {1, 2, 2, 3}), {97, 6}, {}},
      {"dilation beyond the text", Window(9, 9, 2, {40, 1}), {50, 1, 3}, {}},
      {"dilation with globals and holes",
       Window(4, 4, 3, {1, 2, 5}),
       {111},
       {Roles(111, {0, 50}, {1, 2, 3, 80})}},
      {"causal dilation", Window(4, 0, 2, {1, 4}), {75}, {}},
      {"wide heads", Window(12, 12, 1), {80}, {}, 128, 128},
      {"unequal head widths", Window(12, 12, 2), {80}, {Roles(80, {0})}, 24, 72},
      {"narrow heads", Window(12, 12, 3), {80}, {Roles(80, {7})}, 1, 5},
      {"long", Window(128, 128, 1), {700, 333}, {Roles(700, {0}), {}}, 64, 64},
  };
  for (int i = 100; i < 180; ++i) cases[12].roles[0][i] = kMaskedToken;
  Case all_global{"all global", Window(3, 3), {40}, {{}}};
  for (int i = 0; i < 40; ++i) all_global.roles[0].push_back(kGlobalToken);
  all_global.roles[0][20] = kLocalToken;
  cases.push_back(all_global);
  Case all_masked{"all masked", Window(3, 3), {70}, {std::vector<uint8_t>(70, kMaskedToken)}};
  cases.push_back(all_masked);
  Case alternate{"every other token global", Window(5, 5), {150}, {{}}};
  for (int i = 0; i < 150; ++i) alternate.roles[0].push_back(i % 2 ? kGlobalToken : kLocalToken);
  cases.push_back(alternate);
  Case lra{"causal globals", Window(10, 0), {130}, {Roles(130, {2, 64, 100})}};
  lra.pattern.causal_globals = true;
  cases.push_back(lra);
  return cases;
}

TEST(BandTest, EqualsTheDefinitionInFloat) {
  for (const Case& c : Cases()) RunCase(c, DType::kFloat32);
}

TEST(BandTest, EqualsTheDefinitionInBFloat16) {
  for (const Case& c : Cases()) RunCase(c, DType::kBFloat16);
}

TEST(BandTest, WantedRowsAreCompactAndBitwiseTheSame) {
  std::mt19937 random(3);
  const int tokens = 300;
  const std::vector<int32_t> wanted = {0, 1, 2, 5, 63, 64, 150, 151, 152, 298, 299};
  const Tensor q = Tensor::Random(tokens, 2, 32, &random);
  const Tensor k = Tensor::Random(tokens, 2, 32, &random);
  const Tensor v = Tensor::Random(tokens, 2, 32, &random);
  Tensor some_q(static_cast<int>(wanted.size()), 2, 32);
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (int h = 0; h < 2; ++h) {
      for (int d = 0; d < 32; ++d) some_q.SetAt(i, h, d, q.At(wanted[i], h, d));
    }
  }
  for (const std::vector<int>& dilation : {std::vector<int>{}, std::vector<int>{1, 3}}) {
    const BandPattern pattern = Window(20, 20, 2, dilation);
    BandSequence sequence;
    sequence.tokens = tokens;
    const Plan all = PlanBand(pattern, std::span(&sequence, 1));
    sequence.wanted = &wanted;
    const Plan some = PlanBand(pattern, std::span(&sequence, 1));
    const std::vector<Source> sources(all.sources.size(), RowsSource(k, v));
    for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
      Tensor out(tokens, 2, 32);
      Tensor some_out(static_cast<int>(wanted.size()), 2, 32);
      Call call = MakeCall(q, &out, 0.2f);
      call.sources = sources;
      testing::RunChecked(all, call, isa);
      Call some_call = MakeCall(some_q, &some_out, 0.2f);
      some_call.sources = sources;
      testing::RunChecked(some, some_call, isa);
      for (size_t i = 0; i < wanted.size(); ++i) {
        for (int h = 0; h < 2; ++h) {
          for (int d = 0; d < 32; ++d) {
            ASSERT_EQ(some_out.At(i, h, d), out.At(wanted[i], h, d)) << wanted[i];
          }
        }
      }
    }
  }
}

// A document read in pieces: rows of a part, keys from a block's start on, globals from anywhere.
TEST(BandTest, PartsHaveTheBitsOfTheWhole) {
  constexpr int kTokens = 300, kWindow = 20;
  std::mt19937 random(5);
  const std::vector<uint8_t> roles = Roles(kTokens, {0, 77, 290}, {31, 130});
  const Tensor q = Tensor::Random(kTokens, 2, 16, &random);
  const Tensor k = Tensor::Random(kTokens, 2, 16, &random);
  const Tensor v = Tensor::Random(kTokens, 2, 16, &random);
  for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
    SCOPED_TRACE(IsaName(isa));
    BandPattern pattern = Window(kWindow, kWindow);
    pattern.tile_rows = TileRows(isa);
    const auto run = [&](const BandSequence& sequence, const Tensor& queries) {
      const Plan plan = PlanBand(pattern, std::span(&sequence, 1));
      Tensor out(queries.rows(), 2, 16);
      Call call = MakeCall(queries, &out, 0.25f);
      const std::vector<Source> sources(plan.sources.size(), RowsSource(k, v));
      call.sources = sources;
      testing::RunChecked(plan, call, isa, 2);
      return out;
    };
    BandSequence all;
    all.tokens = kTokens;
    all.roles = roles;
    const Tensor whole = run(all, q);
    for (const auto& [first, count] : {std::pair(0, 64), {64, 128}, {192, 108}}) {
      const int begin = std::max(0, first - kWindow) / 64 * 64;
      const int end = std::min(kTokens, first + count + kWindow);
      std::vector<int32_t> wanted, globals = GlobalPositions(all);
      for (int i = 0; i < count; ++i) wanted.push_back(first - begin + i);
      for (int32_t& position : globals) position -= begin;
      BandSequence part;
      part.row0 = begin;
      part.tokens = end - begin;
      part.roles = std::span(roles).subspan(begin, end - begin);
      part.wanted = &wanted;
      part.globals = &globals;
      const Tensor out = run(part, q.Slice(first, count));
      for (int i = 0; i < count; ++i) {
        if (roles[first + i] == kGlobalToken) continue;
        for (int d = 0; d < 16; ++d) {
          ASSERT_EQ(out.At(i, d % 2, d), whole.At(first + i, d % 2, d)) << first + i;
        }
      }
    }
  }
}

TEST(BandTest, FullBlocksCarryNoIntervals) {
  const BandPattern pattern = Window(256, 256, 12);
  BandSequence sequence;
  sequence.tokens = 4096;
  const Plan plan = PlanBand(pattern, std::span(&sequence, 1));
  for (const Span& span : plan.spans) {
    if (span.interval < 0) continue;
    EXPECT_LE(span.keys, kBlockSlots + pattern.tile_rows) << "a partial span of whole blocks";
  }
  // Pairs of the definition, and at most a tile's slack on either side of the band.
  int64_t pairs = 0;
  for (int i = 0; i < 4096; ++i) pairs += std::min(4095, i + 256) - std::max(0, i - 256) + 1;
  EXPECT_EQ(plan.useful, 12 * pairs);
  EXPECT_GE(plan.executed, plan.useful);
  EXPECT_LT(plan.executed, plan.useful * 5 / 4);
  // The smallest tile of each head, the sequence's last 16 rows, comes last.
  std::vector<int> rows_of_last(12, 48);
  for (const Item& item : plan.items) {
    EXPECT_GE(rows_of_last[item.head], plan.tiles[item.tile].rows);
    rows_of_last[item.head] = plan.tiles[item.tile].rows;
  }
}

}  // namespace
}  // namespace longview::kernels
