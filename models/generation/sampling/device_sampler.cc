#include "models/generation/sampling/device_sampler.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "models/dense/scratch.h"
#include "models/device/staged_lists.h"
#include "models/generation/sampling/sampler.h"

namespace longview::models {
namespace {

using kernels::cuda::kMostReported;
using kernels::cuda::ReportedToken;
using kernels::cuda::SampledToken;
using kernels::cuda::SampleRow;
using kernels::cuda::SampleRows;
using kernels::cuda::SampleStatus;

size_t Count(int rows, int each) { return static_cast<size_t>(rows) * static_cast<size_t>(each); }

// The rows themselves; of each the ids it has seen, those banned, and those with biases.
size_t ListBytes(int vocab, int rows) {
  const size_t ids = kernels::AlignUp(static_cast<size_t>(vocab) * sizeof(int32_t));
  const size_t biases = kernels::AlignUp(static_cast<size_t>(vocab) * sizeof(double));
  return kernels::AlignUp(Count(rows, 1) * sizeof(SampleRow)) + Count(rows, 3) * ids +
         Count(rows, 1) * biases;
}

// Tokens, and the reports behind them.
size_t ResultBytes(int rows) {
  return kernels::AlignUp(Count(rows, 1) * sizeof(SampledToken)) +
         Count(rows, kMostReported) * sizeof(ReportedToken);
}

// Layout of the sampler's memory on the device.
struct DeviceLayout {
  DeviceLayout(std::byte* memory, int vocab, int rows) : carver(memory) {
    lists = carver.TakeBytes(ListBytes(vocab, rows));
    results = carver.TakeBytes(ResultBytes(rows));
    scores = carver.Take<double>(static_cast<int64_t>(Count(rows, vocab)));
    weights = carver.Take<float>(static_cast<int64_t>(Count(rows, vocab)));
  }
  Carver carver;
  std::byte* lists;
  std::byte* results;
  double* scores;
  float* weights;
};

struct Results {
  Results(std::byte* memory, size_t rows)
      : tokens(reinterpret_cast<SampledToken*>(memory)),
        top(reinterpret_cast<ReportedToken*>(memory +
                                             kernels::AlignUp(rows * sizeof(SampledToken)))) {}
  SampledToken* tokens;
  ReportedToken* top;
};

SampleRow StageRow(const SamplingRow& from, StagedLists& lists) {
  const GenerationSettings& settings = *from.choice.settings;
  const TokenHistory& history = *from.choice.history;
  SampleRow row = {};
  row.logits = from.logits;
  const std::span<const int32_t> seen =
      from.choice.processors->needs_distinct() ? history.distinct() : std::span<const int32_t>();
  row.seen = lists.Add(seen);
  row.seen_count = static_cast<int32_t>(seen.size());
  row.penalty = settings.repetition_penalty;
  const std::vector<int32_t> banned = from.choice.processors->Banned(history);
  row.banned = lists.Add(std::span<const int32_t>(banned));
  row.banned_count = static_cast<int32_t>(banned.size());
  std::vector<int32_t> biased;
  std::vector<double> biases;
  for (const LogitsProcessors::Bias& bias : from.choice.processors->Biases(history)) {
    biased.push_back(bias.id);
    biases.push_back(bias.bias);
  }
  row.biased = lists.Add(std::span<const int32_t>(biased));
  row.biases = lists.Add(std::span<const double>(biases));
  row.biased_count = static_cast<int32_t>(biased.size());
  row.sample = settings.sample ? 1 : 0;
  row.temperature = settings.temperature;
  row.top_k = settings.top_k;
  row.top_p = settings.top_p;
  row.min_p = settings.min_p;
  row.typical_p = settings.typical_p;
  row.epsilon_cutoff = settings.epsilon_cutoff;
  row.eta_cutoff = settings.eta_cutoff;
  row.seed = settings.seed;
  row.sequence = static_cast<uint32_t>(from.choice.sample);
  row.step = static_cast<uint32_t>(history.generated().size());
  row.reported = settings.logprobs.value_or(from.choice.scores ? 0 : -1);
  return row;
}

ChosenToken Read(const SampledToken& token, const ReportedToken* top, int reported) {
  switch (token.status) {
    case SampleStatus::kNotNumbers:
      return {LogitsNotNumbers(), 0, {}};
    case SampleStatus::kNotFinite:
      return {LogitsNotFinite(), 0, {}};
    case SampleStatus::kNothingLeft:
      return {NoTokenLeft(), 0, {}};
    case SampleStatus::kChosen:
      break;
  }
  ChosenToken chosen = {token.id, token.logprob, {}};
  for (int i = 0; i < reported; ++i) chosen.top.push_back({top[i].id, top[i].logprob});
  return chosen;
}

}  // namespace

bool DeviceSampler::Takes(const GenerationSettings& settings) {
  GenerationSettings rest = settings;
  rest.repetition_penalty = 1;
  rest.min_length = rest.min_new_tokens = 0;
  rest.no_repeat_ngram = rest.encoder_no_repeat_ngram = 0;
  rest.bad_words.clear();
  rest.suppress.clear();
  rest.begin_suppress.clear();
  rest.sequence_bias.clear();
  return settings.beams == 1 && LogitsProcessors(rest, {}).neutral();
}

size_t DeviceSampler::DeviceBytes(int vocab, int rows) {
  return DeviceLayout(nullptr, vocab, rows).carver.used();
}

DeviceSampler::DeviceSampler(const Device& device, int vocab, int rows)
    : device_(device),
      vocab_(vocab),
      room_(static_cast<size_t>(rows)),
      memory_(device, DeviceBytes(vocab, rows)),
      lists_(device, ListBytes(vocab, rows)),
      results_(device, ResultBytes(rows)) {}

void DeviceSampler::Hand(std::span<const SamplingRow> rows) {
  KERNEL_CHECK(rows.size() <= room_);
  const DeviceLayout layout(memory_.data(), vocab_, static_cast<int>(room_));
  StagedLists lists(lists_.data(), layout.lists);
  std::vector<SampleRow> staged;
  reported_.clear();
  for (const SamplingRow& row : rows) {
    staged.push_back(StageRow(row, lists));
    reported_.push_back(std::min(staged.back().reported, vocab_));
  }
  const Results on_device(layout.results, room_);
  SampleRows args = {};
  args.rows = lists.Add(std::span<const SampleRow>(staged));
  args.count = static_cast<int32_t>(rows.size());
  args.vocab = vocab_;
  args.scores = layout.scores;
  args.weights = layout.weights;
  args.out = on_device.tokens;
  args.top = on_device.top;
  const kernels::cuda::PluginApi& api = device_.api();
  device_.Check(api.copy_in(device_.stream(), layout.lists, lists_.data(), lists.used()),
                "sampling rows");
  device_.Check(api.sampling.sample(device_.stream(), args), "sampling");
  device_.Check(api.copy_out(device_.stream(), results_.data(), layout.results, results_.bytes()),
                "sampled tokens");
}

std::vector<ChosenToken> DeviceSampler::Take() const {
  const Results results(results_.data(), room_);
  std::vector<ChosenToken> tokens;
  for (size_t i = 0; i < reported_.size(); ++i) {
    tokens.push_back(Read(results.tokens[i], results.top + i * kMostReported, reported_[i]));
  }
  return tokens;
}

}  // namespace longview::models
