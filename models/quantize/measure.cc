#include "models/quantize/measure.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/pauses.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

absl::StatusOr<std::unique_ptr<Item>> PrepareProbe(const Model& model, const Probe& probe,
                                                   const Request& request) {
  if (probe.picture.empty()) return model.Prepare(request);
  Request whole = request;
  ASSIGN_OR_RETURN(whole.image, ReadFile(probe.picture, kMostPictureBytes));
  return model.Prepare(whole);
}

absl::StatusOr<Answer> RunBatch(Model& model, const Item& item) {
  const Item* const batch[] = {&item};
  const std::unique_ptr<Run> run = model.Begin(batch);
  RunToEnd(*run);
  return run->Take(0);
}

absl::StatusOr<Answer> RunSteps(Model& model, const Item& item) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation, model.Start(item));
  while (!generation->done()) {
    const StepGrant grant = {generation.get(), generation->need().prefill};
    RunToEnd(*model.BeginStep({&grant, 1}));
  }
  return generation->Take();
}

absl::StatusOr<Answer> RunItem(Model& model, const Item& item) {
  return model.info().prefill_alignment > 0 ? RunSteps(model, item) : RunBatch(model, item);
}

// The outcome of a prepared probe; its time is added to `seconds`.
absl::StatusOr<Outcome> TimeItem(Model& model, const Probe& probe, const Item& item,
                                 double& seconds) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const Answer answer, RunItem(model, item));
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return OutcomeOf(probe, answer);
}

// The model's own output; no tokens if it ends at once.
absl::Status TakeOutput(Model& model, Probe& probe) {
  ASSIGN_OR_RETURN(const auto item, model.Prepare(OutputRequest(probe)));
  ASSIGN_OR_RETURN(Answer answer, RunItem(model, *item));
  TokenInput& output = probe.request.decoder_tokens.emplace();
  if (!answer.sequences.empty()) output.ids = std::move(answer.sequences[0].token_ids);
  return absl::OkStatus();
}

// Probes that the model refuses, and the first reason.
struct Refused {
  size_t count = 0;
  std::string first;
};

absl::StatusOr<std::unique_ptr<Item>> PrepareFirst(Model& model, Probe& probe) {
  if (probe.comparison == Comparison::kBitsPerToken) {
    RETURN_IF_ERROR(TakeOutput(model, probe));
    if (probe.request.decoder_tokens->ids.empty()) {
      return absl::InvalidArgumentError("the model's output is empty");
    }
  }
  return PrepareProbe(model, probe, probe.request);
}

}  // namespace

absl::StatusOr<Measured> MeasureFirst(Model& model, std::vector<Probe>& probes,
                                      std::vector<std::string>& notes, MeasureProgress progress) {
  std::vector<Probe> taken;
  Measured measured;
  Refused refused;
  double seconds = 0;
  size_t done = 0;
  for (Probe& probe : probes) {
    const auto item = PrepareFirst(model, probe);
    if (item.ok()) {
      ASSIGN_OR_RETURN(Outcome outcome, TimeItem(model, probe, **item, seconds));
      measured.outcomes.push_back(std::move(outcome));
      taken.push_back(std::move(probe));
    } else if (!absl::IsInvalidArgument(item.status())) {
      return item.status();
    } else if (probe.comparison != Comparison::kMaskTop1 && refused.count++ == 0) {
      refused.first = absl::StrCat(probe.picture, probe.picture.empty() ? "" : ": ",
                                   std::string(item.status().message()));
    }
    progress(++done, probes.size());
  }
  if (taken.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("nothing is left to compare: ", refused.first));
  }
  if (refused.count > 0) {
    notes.push_back(absl::StrCat(refused.count, " left out: ", refused.first));
  }
  probes = std::move(taken);
  measured.seconds = seconds / static_cast<double>(probes.size());
  return measured;
}

absl::StatusOr<Measured> Measure(Model& model, const std::vector<Probe>& probes,
                                 MeasureProgress progress) {
  Measured measured;
  double seconds = 0;
  for (const Probe& probe : probes) {
    ASSIGN_OR_RETURN(const auto item, PrepareProbe(model, probe, probe.request));
    ASSIGN_OR_RETURN(Outcome outcome, TimeItem(model, probe, *item, seconds));
    measured.outcomes.push_back(std::move(outcome));
    progress(measured.outcomes.size(), probes.size());
  }
  measured.seconds = seconds / static_cast<double>(probes.size());
  return measured;
}

}  // namespace longview::models
