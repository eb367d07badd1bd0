#include "tests/models/transformer_ls/golden_checks.h"

namespace longview::models {

std::vector<int32_t> LsGoldenChecks::Ids(const std::string& name) const {
  const std::vector<int64_t> wide = golden_.Integers(name);
  return {wide.begin(), wide.end()};
}

void LsGoldenChecks::Compare(std::span<const float> got, const std::string& name) {
  double error = LargestDifference(got, golden_.ExpectedExactly(name));
  EXPECT_LE(error, limit_) << name;
  if (golden_.Expects(name + ".f64")) {
    // The last rows only.
    const std::vector<double> exact = golden_.Expected(name);
    ASSERT_LE(exact.size(), got.size());
    error = LargestDifference(got.subspan(got.size() - exact.size()), exact);
    EXPECT_LE(error, limit_) << name << ".f64";
  }
  largest_ = std::max(largest_, error);
  ++compared_;
}

void LsGoldenChecks::WholeTexts(DecoderReader& model) {
  for (int i = 0; golden_.HasInput("input_ids." + std::to_string(i)); ++i) {
    const std::string name = "logits." + std::to_string(i);
    if (!golden_.Expects(name)) continue;
    const auto sequence = model.New();
    const std::vector<float> all = model.Read(*sequence, Ids("input_ids." + std::to_string(i)));
    const std::string positions = "positions." + std::to_string(i);
    if (!golden_.Expects(positions)) {
      Compare(all, name);
      continue;
    }
    // Long texts: some positions only.
    std::vector<float> some;
    for (const double position : golden_.Expected(positions)) {
      const auto row = all.begin() + static_cast<int64_t>(position) * model.decoder().vocab_size();
      some.insert(some.end(), row, row + model.decoder().vocab_size());
    }
    Compare(some, name);
  }
}

void LsGoldenChecks::StepByStep(DecoderReader& model) {
  const std::vector<int32_t> ids = Ids("input_ids.0");
  const std::span<const int32_t> text(ids);
  for (int prompt = 0; prompt < static_cast<int>(ids.size()); ++prompt) {
    const std::string name = "step_logits.p" + std::to_string(prompt);
    if (!golden_.Expects(name)) continue;
    const auto sequence = model.New();
    if (prompt > 0) model.Read(*sequence, text.first(prompt), WantedLogits::kNone);
    const auto steps = golden_.ExpectedExactly(name).size() / model.decoder().vocab_size();
    Compare(model.Step(*sequence, text.subspan(prompt, steps)), name);
  }
}

void LsGoldenChecks::Forks(DecoderReader& model) {
  if (!golden_.HasInput("fork.prompt")) return;
  const std::vector<int32_t> prompt = Ids("fork.prompt"), text = Ids("input_ids.0");
  const auto original = model.New();
  model.Read(*original, prompt, WantedLogits::kNone);
  const auto a = original->Fork(), b = original->Fork();
  Compare(model.Step(*a, Ids("fork.a")), "fork.a.logits");
  Compare(model.Step(*b, Ids("fork.b")), "fork.b.logits");
  const auto rows =
      golden_.ExpectedExactly("fork.original.logits").size() / model.decoder().vocab_size();
  Compare(model.Step(*original, std::span(text).subspan(prompt.size(), rows)),
          "fork.original.logits");
}

void LsGoldenChecks::Continuations(DecoderReader& model) {
  for (int i = 0; golden_.HasInput("prompt." + std::to_string(i)); ++i) {
    const std::vector<double> want = golden_.Expected("greedy." + std::to_string(i));
    const auto sequence = model.New();
    const std::vector<int32_t> prompt = Ids("prompt." + std::to_string(i));
    std::vector<float> logits = model.Read(*sequence, prompt, WantedLogits::kLast);
    for (size_t t = 0; t < want.size(); ++t) {
      const int32_t next = Greedy(logits);
      ASSERT_EQ(next, want[t]) << "greedy." << i << ", token " << t;
      logits = model.Step(*sequence, {&next, 1});
    }
  }
}

}  // namespace longview::models
