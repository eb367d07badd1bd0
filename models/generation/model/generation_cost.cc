#include "models/generation/model/generation_cost.h"

#include <algorithm>

#include "models/generation/decoder/token_run.h"
#include "models/generation/model/prompt_scores.h"

namespace longview::models {
namespace {

// The sum of each(t) for t in [begin, end): piecewise almost linear, so by trapezoids.
template <typename Each>
double Sum(int64_t begin, int64_t end, Each each) {
  constexpr int64_t kParts = 32;
  double sum = 0;
  const int64_t width = std::max<int64_t>(1, (end - begin + kParts - 1) / kParts);
  for (int64_t t = begin; t < end; t += width) {
    const int64_t last = std::min(t + width, end) - 1;
    sum += (each(t) + each(last)) / 2 * static_cast<double>(last - t + 1);
  }
  return sum;
}

GenerationSize SizeOf(const GenerationItem& item, int prefill_alignment) {
  GenerationSize size;
  size.prompt = item.document_tokens + static_cast<int>(item.prompt.size());
  size.read = GeneratorDocument::ReadAhead(item.document_tokens, prefill_alignment);
  if (item.extend) {
    size.prompt = GeneratorDocument::ReadAhead(size.prompt, prefill_alignment);
    return size;
  }
  size.new_tokens = item.settings.max_new_tokens;
  if (size.new_tokens > 0) {
    size.sequences = std::max(item.settings.sequences, item.settings.beams);
  }
  return size;
}

double GenerationMultiplyAdds(const DecoderCosts& costs, const GenerationSize& size) {
  const auto each = [&](int64_t t) { return costs.MultiplyAdds(t); };
  const int64_t last = int64_t{size.prompt} + std::max(size.new_tokens - 1, 0);
  return Sum(size.read, size.prompt, each) + size.sequences * Sum(size.prompt, last, each);
}

}  // namespace

double ReadingSeconds(const DecoderCosts& costs, int64_t begin, int64_t end) {
  return Sum(begin, end, [&](int64_t t) { return costs.PrefillSeconds(t); });
}

double GenerationSeconds(const DecoderCosts& costs, const GenerationSize& size) {
  const double prefill = ReadingSeconds(costs, size.read, size.prompt);
  const double decode =
      Sum(size.prompt, int64_t{size.prompt} + std::max(size.new_tokens - 1, 0),
          [&](int64_t t) { return size.sequences * costs.DecodeSeconds(t) + costs.StepSeconds(); });
  return prefill + decode + costs.StepSeconds();
}

double GenerationStateBytes(const DecoderCosts& costs, const GenerationItem& item,
                            int prefill_alignment) {
  const GenerationSize size = SizeOf(item, prefill_alignment);
  const int before = item.document_tokens;
  const double document = before > 0 ? costs.StateBytes(0, before, 1) : 0;
  if (item.extend) {
    const int after = before + static_cast<int>(item.prompt.size());
    return after > 0 ? costs.StateBytes(0, after, 1) - document : 0;
  }
  const int longest = size.prompt + std::max(size.new_tokens - 1, 0);
  const double alone = costs.StateBytes(size.prompt, longest, size.sequences);
  if (size.read == 0) return alone;
  // The document stays where it is beside the forks, whose common part may leave its window: as
  // much as all of them forked where the document ends, less what it holds itself.
  const double together = costs.StateBytes(size.read, longest, size.sequences + 1);
  return std::clamp(together - document, 0.0, alone);
}

Cost GenerationCost(const DecoderCosts& costs, const EncoderStage* encoder,
                    const GenerationItem& item, int prefill_alignment, int vocab) {
  const GenerationSize size = SizeOf(item, prefill_alignment);
  Cost cost;
  cost.seconds = GenerationSeconds(costs, size);
  cost.prompt_seconds = ReadingSeconds(costs, size.read, size.prompt);
  cost.multiply_adds = GenerationMultiplyAdds(costs, size);
  cost.state_bytes = GenerationStateBytes(costs, item, prefill_alignment);
  const int part = std::min(kPrefillPart, size.prompt - size.read);
  if (encoder != nullptr) {
    const int tokens = item.source->tokens();
    cost.prompt_seconds += item.source_cost.seconds;
    cost.seconds += item.source_cost.seconds +
                    encoder->AttendSeconds(tokens) * size.new_tokens * size.sequences;
    cost.multiply_adds += item.source_cost.multiply_adds +
                          encoder->AttendMultiplyAdds(tokens) * size.new_tokens * size.sequences;
    cost.state_bytes += item.source_cost.bytes;
    cost.workspace_bytes = item.source_cost.workspace_bytes;
  }
  if (part > 0) {
    cost.workspace_bytes = std::max(cost.workspace_bytes, costs.WorkspaceBytes(part, 0));
  }
  if (size.new_tokens > 0) {
    cost.workspace_bytes = std::max(cost.workspace_bytes, costs.WorkspaceBytes(0, size.sequences));
  }
  cost.workspace_bytes += costs.TableBytes(int64_t{size.prompt} + std::max(size.new_tokens - 1, 0));
  // Rows of a pass; those that are wanted are kept until the answer is taken.
  const double row_bytes = sizeof(float) * static_cast<double>(vocab);
  if (item.scores_prompt() || item.wants_logits) {
    cost.workspace_bytes += std::max(part, 0) * row_bytes;
  }
  if (item.wants_logits) {
    cost.state_bytes += static_cast<double>(item.prompt.size()) * row_bytes;
  }
  cost.answer_bytes = EchoBytes(item);
  cost.state_bytes += cost.answer_bytes;
  constexpr double kTextBytes = 4;
  cost.token_bytes = kTextBytes + static_cast<double>(TokenBytes(item.settings.logprobs));
  return cost;
}

}  // namespace longview::models
