#include "models/quantize/quantize.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/dense/compute_choice.h"
#include "models/quantize/damage.h"
#include "models/quantize/measure.h"
#include "models/quantize/probes.h"
#include "models/quantize/report.h"
#include "models/quantize/search.h"
#include "models/quantize/settings_file.h"
#include "models/quantize/verdict.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// Probes that decide which linears int8 damages.
constexpr size_t kDamageProbes = 64;

class Gate {
 public:
  Gate(const QuantizeOptions& options, const QuantizeProgress& progress)
      : options_(options), progress_(progress) {}

  absl::StatusOr<QuantizeResult> Run() {
    RETURN_IF_ERROR(CheckMachine());
    GivenInputs inputs;
    RETURN_IF_ERROR(ReadInputs(options_.files, inputs));
    findings_.notes = inputs.notes;
    RETURN_IF_ERROR(MeasureExact(inputs));
    if (beside_ == Compute::kBf16) {
      ASSIGN_OR_RETURN(findings_.bf16, TryAs("bf16", {.dtype = "bf16"}));
    }
    ASSIGN_OR_RETURN(findings_.int8, TryKept("int8", {}));
    if (AllHold(findings_.int8.metrics)) {
      findings_.chosen = findings_.int8;
    } else {
      RETURN_IF_ERROR(Search());
    }
    return Finish();
  }

 private:
  // Options of a load that differ between trials.
  struct Form {
    std::string dtype;
    std::optional<std::vector<std::string>> kept = std::nullopt;
    Int8Observer* observer = nullptr;
  };

  // Tells the progress of a step.
  auto Told(std::string step) const {
    return [this, step = std::move(step)](size_t done, size_t all) { progress_(step, done, all); };
  }

  absl::Status CheckMachine() {
    ASSIGN_OR_RETURN(const ComputeChoice choice, ChooseCompute("int8", "", ""));
    beside_ = choice.compute;
    findings_.beside = ComputeName(beside_);
    // Faults of the file come before the work, too.
    RETURN_IF_ERROR(Int8Settings(options_.directory, {}).status());
    return options_.dry_run ? absl::OkStatus() : CheckWritable(options_.directory);
  }

  absl::StatusOr<std::unique_ptr<Model>> Load(const Form& form) const {
    LoadOptions load = options_.load;
    load.device = "cpu";
    load.dtype = form.dtype;
    load.int8_keep = form.kept;
    load.int8_observer = form.observer;
    return LoadModel(options_.directory, load);
  }

  absl::Status MeasureExact(const GivenInputs& inputs) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Load({.dtype = "fp32"}));
    const ModelInfo& info = model->info();
    ASSIGN_OR_RETURN(probes_, MakeProbes(info, inputs));
    ASSIGN_OR_RETURN(Measured measured,
                     MeasureFirst(*model, probes_, findings_.notes, Told("fp32")));
    findings_.model = absl::StrCat(info.family, ", ", std::string(TaskName(info.task)));
    findings_.inputs = probes_.size();
    findings_.fp32.seconds = measured.seconds;
    findings_.fp32.bytes = info.memory_bytes;
    labels_ = info.labels;
    exact_ = std::move(measured.outcomes);
    return absl::OkStatus();
  }

  absl::StatusOr<Trial> TryAs(const std::string& step, const Form& form) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Load(form));
    ASSIGN_OR_RETURN(const Measured measured, Measure(*model, probes_, Told(step)));
    return Trial{.metrics = Compare(probes_, exact_, measured.outcomes, labels_),
                 .seconds = measured.seconds,
                 .bytes = model->info().memory_bytes};
  }

  absl::StatusOr<Trial> TryKept(const std::string& step, std::vector<std::string> kept) const {
    return TryAs(step, {.dtype = "int8", .kept = std::move(kept)});
  }

  absl::StatusOr<std::vector<LinearDamage>> Rank() const {
    DamageObserver observer;
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Model> model,
        Load({.dtype = "int8", .kept = std::vector<std::string>(), .observer = &observer}));
    std::vector<Probe> some;
    for (const size_t place : EvenlySpaced(probes_.size(), kDamageProbes)) {
      some.push_back(probes_[place]);
    }
    RETURN_IF_ERROR(Measure(*model, some, Told("damage of each linear")).status());
    return observer.Ranking();
  }

  absl::Status Search() {
    ASSIGN_OR_RETURN(std::vector<LinearDamage> ranking, Rank());
    std::optional<Trial> best;  // The last one that held, which is the one of fewest.
    const auto holds = [&](size_t count) -> absl::StatusOr<bool> {
      std::vector<std::string> kept;
      for (size_t i = 0; i < count; ++i) kept.push_back(ranking[i].linear);
      ASSIGN_OR_RETURN(Trial trial,
                       TryKept(absl::StrCat("int8 with ", count, " linears kept"), kept));
      const bool good = AllHold(trial.metrics);
      if (good) best = std::move(trial);
      return good;
    };
    ASSIGN_OR_RETURN(const std::optional<size_t> count, LeastKept(ranking.size(), holds));
    findings_.linears = ranking.size();
    if (!count || *count == ranking.size()) {
      failed_ = absl::StrCat("int8 gains nothing here: the bounds ",
                             count ? "hold only" : "do not hold even", " with all ", ranking.size(),
                             " linears in ", findings_.beside);
      return absl::OkStatus();
    }
    ranking.resize(*count);
    findings_.kept = std::move(ranking);
    findings_.chosen = std::move(best);
    return absl::OkStatus();
  }

  absl::StatusOr<QuantizeResult> Finish() {
    QuantizeResult result = {ReportText(findings_), failed_};
    if (!failed_.empty()) return result;
    std::vector<std::string> kept;
    for (const LinearDamage& damage : findings_.kept) kept.push_back(damage.linear);
    ASSIGN_OR_RETURN(const std::string settings, Int8Settings(options_.directory, std::move(kept)));
    if (options_.dry_run) {
      absl::StrAppend(&result.report, "not written (--dry_run): longview.json\n", settings);
      return result;
    }
    RETURN_IF_ERROR(WriteSettings(options_.directory, settings));
    absl::StrAppend(&result.report, "written: ", options_.directory, "/longview.json\n");
    return result;
  }

  const QuantizeOptions& options_;
  const QuantizeProgress& progress_;
  Compute beside_ = Compute::kFp32;
  std::vector<Probe> probes_;
  std::vector<Outcome> exact_;
  std::vector<std::string> labels_;
  QuantizeFindings findings_;
  std::string failed_;
};

}  // namespace

absl::StatusOr<QuantizeResult> Quantize(const QuantizeOptions& options,
                                        const QuantizeProgress& progress) {
  return Gate(options, progress).Run();
}

}  // namespace longview::models
