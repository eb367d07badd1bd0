#include "models/quantize/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longview::models {
namespace {

using Row = std::vector<std::string>;

// Columns two spaces apart.
std::string Columns(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string Number(const Metric& metric, double value) {
  return metric.percent ? absl::StrFormat("%.2f %%", value * 100) : absl::StrFormat("%.4f", value);
}

std::string Verdict(const Metric& metric) {
  return absl::StrCat(Number(metric, metric.value), metric.of.empty() ? "" : " of ", metric.of,
                      metric.Holds() ? "" : " (fails)");
}

std::string MetricTable(const QuantizeFindings& findings) {
  std::vector<Row> rows = {{"metric", "of", "bound", "int8"}};
  if (findings.chosen) rows[0].emplace_back("chosen");
  for (size_t i = 0; i < findings.int8.metrics.size(); ++i) {
    const Metric& metric = findings.int8.metrics[i];
    Row& row = rows.emplace_back(
        Row{metric.name, absl::StrCat(metric.count),
            absl::StrCat(metric.at_least ? ">= " : "<= ", Number(metric, metric.bound)),
            Verdict(metric)});
    if (findings.chosen) row.push_back(Verdict(findings.chosen->metrics[i]));
  }
  return Columns(rows);
}

std::string CostTable(const QuantizeFindings& findings) {
  std::vector<Row> rows = {{""}, {"weights"}, {"seconds an input"}};
  const auto add = [&](const char* name, const Trial* trial) {
    if (trial == nullptr) return;
    rows[0].emplace_back(name);
    rows[1].push_back(absl::StrFormat("%.1f MB", trial->bytes / 1e6));
    rows[2].push_back(absl::StrFormat("%.4g", trial->seconds));
  };
  add("fp32", &findings.fp32);
  add("bf16", findings.bf16 ? &*findings.bf16 : nullptr);
  add("int8", &findings.int8);
  add("chosen", findings.chosen ? &*findings.chosen : nullptr);
  return Columns(rows);
}

std::string KeptList(const QuantizeFindings& findings) {
  if (!findings.chosen) return "";
  if (findings.kept.empty()) return "all linears are int8\n";
  std::vector<Row> rows;
  for (const LinearDamage& damage : findings.kept) {
    rows.push_back({"  " + damage.linear,
                    absl::StrFormat("noise %.1f %% of its products", damage.noise * 100)});
  }
  return absl::StrCat(findings.kept.size(), " of ", findings.linears, " linears stay ",
                      findings.beside, ":\n", Columns(rows));
}

}  // namespace

std::string ReportText(const QuantizeFindings& findings) {
  std::string text = absl::StrCat(findings.model, ", ", findings.inputs, " inputs\n\n");
  absl::StrAppend(&text, MetricTable(findings), "\n", CostTable(findings), "\n",
                  KeptList(findings));
  for (const std::string& note : findings.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

}  // namespace longview::models
