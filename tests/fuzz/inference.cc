#include "tests/fuzz/inference.h"

#include <array>

#include "server/api/infer/infer_items.h"
#include "server/api/infer/infer_parameters.h"
#include "server/api/infer/tensor_decode.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fake_answers.h"
#include "tests/support/fake_model.h"

namespace longview::fuzz {
namespace {

using models::Task;

void ReadElements(const server::InputTensor& input) {
  FUZZ_PROMISE(input.count >= 1);
  if (input.type == models::TensorType::kBytes) {
    const auto strings = server::ReadStrings(input);
    FUZZ_PROMISE(!strings.ok() || static_cast<int64_t>(strings->size()) == input.count);
  } else if (input.type == models::TensorType::kInt64 || input.type == models::TensorType::kInt32) {
    const auto integers = server::ReadIntegers(input);
    FUZZ_PROMISE(!integers.ok() || static_cast<int64_t>(integers->size()) == input.count);
  }
}

}  // namespace

void ReadInference(const inference::ModelInferRequest& request, uint8_t kind) {
  constexpr std::array kTasks = {
      Task::kTextClassification, Task::kMultipleChoice, Task::kTokenClassification,
      Task::kQuestionAnswering,  Task::kFillMask,       Task::kEmbedding};
  testing::FakeOptions options;
  options.tasks = {kTasks[kind % kTasks.size()]};
  const models::ModelInfo info = testing::MakeFakeInfo(options);
  const auto inputs = server::ReadInputs(request, info);
  if (!inputs.ok()) return;
  for (const server::InputTensor& input : *inputs) ReadElements(input);
  const auto parameters = server::ReadParameters(request.parameters(), info.task);
  if (!parameters.ok()) return;
  constexpr int kMaxItems = 1024;
  const auto shape = server::MeasureItems(*inputs, info, kMaxItems);
  if (!shape.ok()) return;
  FUZZ_PROMISE(shape->items >= 1 && shape->items <= kMaxItems);
  for (const bool keep_padding : {false, true}) {
    const auto items = server::BuildItems(*inputs, info, *parameters, keep_padding);
    FUZZ_PROMISE(!items.ok() || static_cast<int64_t>(items->size()) == shape->items);
  }
}

}  // namespace longview::fuzz
