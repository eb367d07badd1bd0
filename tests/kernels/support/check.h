// Runs one plan on every variant of this machine, and on the kernels of a device, and compares each
// row with a formula.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/kernels/cuda/support/device_check.h"
#include "tests/kernels/support/naive.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels::testing {

// The list of keys that a family's definition gives one output row.
using Definition = std::function<NaiveRow(int row, int head)>;

struct Problem {
  const Tensor* q = nullptr;
  int out_dim = 0;
  float scale = 1.0f;
  int kv_group = 1;
  std::vector<Source> sources;
  std::vector<Table> tables;
};

// Rows the plan does not write are not compared: `rows` lists the others.
inline void CheckPlanOutputs(const std::function<Plan(int tile_rows)>& make_plan,
                             const Problem& problem, const std::vector<int>& rows,
                             const Definition& definition) {
  const DType dtype = problem.q->dtype();
  std::vector<std::vector<double>> wanted;
  for (const int row : rows) {
    for (int h = 0; h < problem.q->heads(); ++h) {
      wanted.push_back(definition(row, h).Finish(problem.out_dim));
    }
  }
  const auto call_to = [&problem](Tensor* out) {
    Call call = MakeCall(*problem.q, out, problem.scale);
    call.sources = problem.sources;
    call.tables = problem.tables;
    call.kv_group = problem.kv_group;
    return call;
  };
  for (const Isa isa : IsasToTest(dtype)) {
    SCOPED_TRACE(IsaName(isa));
    const Plan plan = make_plan(TileRows(isa));
    Tensor out(problem.q->rows(), problem.q->heads(), problem.out_dim, dtype);
    RunChecked(plan, call_to(&out), isa, 2);
    size_t next = 0;
    for (const int row : rows) {
      for (int h = 0; h < out.heads(); ++h) {
        const std::vector<double>& want = wanted[next++];
        for (int d = 0; d < out.dim(); ++d) {
          ASSERT_NEAR(out.At(row, h, d), want[d], Tolerance(isa, dtype))
              << "row " << row << " head " << h << " d " << d;
        }
      }
    }
  }
  Tensor out(problem.q->rows(), problem.q->heads(), problem.out_dim, dtype);
  cuda::testing::CheckOnDevice(make_plan(kMaxTileRows), call_to(&out), out.rows(), rows, wanted);
}

inline std::vector<int> Range(int first, int count) {
  std::vector<int> range(count);
  for (int i = 0; i < count; ++i) range[i] = first + i;
  return range;
}

// A Dotted table of rows, stored [entries, H, Dk].
inline Table DottedTable(const Tensor& tensor) {
  Table table;
  table.data = tensor.data();
  table.dtype = tensor.dtype();
  table.entries = tensor.rows();
  table.head_stride = tensor.dim();
  table.entry_stride = tensor.row_stride();
  return table;
}

// An Added table, stored [H, entries]: heads are the tensor's rows.
inline Table AddedTable(const Tensor& tensor) {
  Table table;
  table.data = tensor.data();
  table.entries = tensor.dim();
  table.head_stride = tensor.dim();
  return table;
}

}  // namespace longview::kernels::testing
