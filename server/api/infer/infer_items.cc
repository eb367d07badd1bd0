#include "server/api/infer/infer_items.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/api/calls/context.h"
#include "server/api/calls/copies.h"
#include "server/api/infer/token_rows.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using models::Request;
using models::Task;

absl::Status BadInput(std::string_view name, std::string_view problem) {
  return BadField(absl::StrCat("input ", Quoted(name)), problem);
}

// n of a BYTES input of shape [n] or [n,1].
absl::StatusOr<int64_t> CountStrings(const InputTensor& input) {
  const bool column = input.shape.size() == 2 && input.shape[1] == 1;
  if (input.shape.size() == 1 || column) return input.shape[0];
  return BadInput(input.name,
                  absl::StrCat("shape is ", ShapeText(input.shape), ", must be [n] or [n,1]"));
}

absl::Status CheckCount(const InputTensor& input, int64_t wanted, std::string_view of) {
  ASSIGN_OR_RETURN(const int64_t count, CountStrings(input));
  if (count == wanted) return absl::OkStatus();
  return BadInput(input.name,
                  absl::StrCat("has ", count, " items, ", std::string(of), " has ", wanted));
}

// Inputs that only go with token ids, and those that only go with text.
constexpr std::string_view kTokenInputs[] = {"attention_mask", "token_type_ids",
                                             "global_attention_mask", "input_ids_pair"};
constexpr std::string_view kTextInputs[] = {"text_pair", "question", "choices"};
constexpr std::string_view kDecoderInput = "decoder_input_ids";

absl::StatusOr<ItemShape> MeasureText(const std::vector<InputTensor>& inputs, Task task) {
  for (const std::string_view name : kTokenInputs) {
    if (Find(inputs, name) != nullptr) return BadInput(name, "goes with input_ids, not with text");
  }
  const InputTensor& text = *Find(inputs, "text");
  ASSIGN_OR_RETURN(const int64_t items, CountStrings(text));
  if (const InputTensor* pair = Find(inputs, "text_pair")) {
    if (auto status = CheckCount(*pair, items, "text"); !status.ok()) return status;
  }
  if (task == Task::kQuestionAnswering) {
    const InputTensor* question = Find(inputs, "question");
    if (question == nullptr) return BadInput("question", "missing; it is needed with text");
    if (auto status = CheckCount(*question, items, "text"); !status.ok()) return status;
  }
  if (task == Task::kMultipleChoice) {
    const InputTensor* choices = Find(inputs, "choices");
    if (choices == nullptr) return BadInput("choices", "missing; they are needed with text");
    if (auto status = CountStrings(*choices).status(); !status.ok()) return status;
  }
  return ItemShape{items, true, 0};
}

absl::StatusOr<ItemShape> MeasureTokens(const std::vector<InputTensor>& inputs, Task task) {
  for (const std::string_view name : kTextInputs) {
    if (Find(inputs, name) != nullptr) return BadInput(name, "goes with text, not with input_ids");
  }
  const InputTensor& ids = *Find(inputs, "input_ids");
  const size_t rank = task == Task::kMultipleChoice ? 3 : 2;
  if (ids.shape.size() != rank) {
    return BadInput(ids.name, absl::StrCat("shape is ", ShapeText(ids.shape), ", must be ",
                                           rank == 3 ? "[1,c,T]" : "[n,T]"));
  }
  for (const InputTensor& input : inputs) {
    if (input.name == kDecoderInput) continue;
    if (input.name == "input_ids_pair") {
      if (input.shape.size() == 2 && input.shape[0] == ids.shape[0]) continue;
      return BadInput(input.name, absl::StrCat("shape is ", ShapeText(input.shape),
                                               ", must be [n,T] with n = ", ids.shape[0]));
    }
    if (input.shape == ids.shape) continue;
    return BadInput(input.name,
                    absl::StrCat("shape is ", ShapeText(input.shape),
                                 ", must be that of input_ids, ", ShapeText(ids.shape)));
  }
  return ItemShape{ids.shape[0], false, ids.shape.back()};
}

absl::StatusOr<ItemShape> MeasureImages(const std::vector<InputTensor>& inputs, Task task,
                                        int max_items) {
  const InputTensor* image = Find(inputs, "image");
  const InputTensor* pixels = Find(inputs, "pixel_values");
  if ((image == nullptr) == (pixels == nullptr)) {
    return BadInput("image", image == nullptr
                                 ? "image or pixel_values is needed and neither was given"
                                 : "given together with pixel_values; send one");
  }
  const InputTensor& given = image != nullptr ? *image : *pixels;
  int64_t items = given.shape[0];
  if (image != nullptr) {
    ASSIGN_OR_RETURN(const int64_t count, CountStrings(*image));
    items = count;
  } else if (given.shape.size() != 4 || given.shape[1] != 3) {
    return BadInput(given.name,
                    absl::StrCat("shape is ", ShapeText(given.shape), ", must be [n,3,H,W]"));
  }
  // Detections of several images would not be told apart.
  const int64_t limit = task == Task::kObjectDetection ? 1 : max_items;
  if (items > limit) {
    return BadInput(given.name, absl::StrCat("has ", items, " items, the limit is ", limit,
                                             limit == 1 ? " for this task" : " (max_items)"));
  }
  return ItemShape{items, false, 0};
}

// The start of the output of encoder-decoder models, [1,D], for one document.
absl::Status MeasureDecoder(const std::vector<InputTensor>& inputs, ItemShape& shape) {
  const InputTensor* ids = Find(inputs, kDecoderInput);
  if (ids == nullptr) return absl::OkStatus();
  if (ids->shape.size() != 2 || ids->shape[0] != 1) {
    return BadInput(kDecoderInput,
                    absl::StrCat("shape is ", ShapeText(ids->shape), ", must be [1,D]"));
  }
  if (shape.items != 1) {
    return BadInput(kDecoderInput, absl::StrCat("goes with one document; n is ", shape.items));
  }
  shape.decoder_tokens = ids->shape[1];
  return absl::OkStatus();
}

absl::Status CheckItemCount(const ItemShape& shape, Task task, int max_items) {
  const bool single = task == Task::kQuestionAnswering || task == Task::kMultipleChoice;
  const int64_t limit = single ? 1 : max_items;
  if (shape.items <= limit) return absl::OkStatus();
  return BadInput(shape.from_text ? "text" : "input_ids",
                  absl::StrCat("has ", shape.items, " items, the limit is ", limit,
                               single ? " for this task" : " (max_items)"));
}

// Text of item i, copied: the request ends before the item does.
using Strings = std::vector<std::string_view>;

absl::StatusOr<Strings> ReadOptionalStrings(const std::vector<InputTensor>& inputs,
                                            std::string_view name) {
  const InputTensor* input = Find(inputs, name);
  if (input == nullptr) return Strings{};
  return ReadStrings(*input);
}

absl::Status AddTexts(const std::vector<InputTensor>& inputs, std::vector<Request>& items) {
  ASSIGN_OR_RETURN(const auto texts, ReadOptionalStrings(inputs, "text"));
  ASSIGN_OR_RETURN(const auto pairs, ReadOptionalStrings(inputs, "text_pair"));
  ASSIGN_OR_RETURN(const auto questions, ReadOptionalStrings(inputs, "question"));
  ASSIGN_OR_RETURN(const auto choices, ReadOptionalStrings(inputs, "choices"));
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].text.emplace(texts[i]);
    if (!pairs.empty()) items[i].text_pair.emplace(pairs[i]);
    if (!questions.empty()) items[i].question.emplace(questions[i]);
    items[i].choices.assign(choices.begin(), choices.end());
  }
  return absl::OkStatus();
}

absl::Status AddTokens(const std::vector<InputTensor>& inputs, bool keep_padding,
                       std::vector<Request>& items) {
  ASSIGN_OR_RETURN(std::vector<models::TokenInput> rows, ReadTokenRows(inputs, keep_padding));
  if (items.front().task == Task::kMultipleChoice) {
    items.front().choice_tokens = std::move(rows);
    return absl::OkStatus();
  }
  for (size_t i = 0; i < items.size(); ++i) items[i].tokens = std::move(rows[i]);
  const InputTensor* pair = Find(inputs, "input_ids_pair");
  if (pair == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ReadIntegers(*pair));
  const auto width = static_cast<size_t>(pair->shape[1]);
  for (size_t i = 0; i < items.size(); ++i) {
    const auto begin = ids.begin() + static_cast<ptrdiff_t>(i * width);
    items[i].tokens_pair.emplace().ids.assign(begin, begin + static_cast<ptrdiff_t>(width));
  }
  return absl::OkStatus();
}

absl::Status AddImages(const std::vector<InputTensor>& inputs, std::vector<Request>& items) {
  if (Find(inputs, "image") != nullptr) {
    ASSIGN_OR_RETURN(const auto images, ReadOptionalStrings(inputs, "image"));
    for (size_t i = 0; i < items.size(); ++i) items[i].image.emplace(images[i]);
    return absl::OkStatus();
  }
  const InputTensor& pixels = *Find(inputs, "pixel_values");
  const std::vector<float> values = ReadFloats(pixels);
  const auto size = static_cast<ptrdiff_t>(values.size() / items.size());
  auto from = values.begin();
  for (Request& item : items) {
    models::PixelInput& input = item.pixel_values.emplace();
    // A size beyond int32 would be over the message limit.
    input.height = static_cast<int>(pixels.shape[2]);
    input.width = static_cast<int>(pixels.shape[3]);
    input.values.assign(from, from + size);
    from += size;
  }
  return absl::OkStatus();
}

}  // namespace

bool IsImageTask(Task task) {
  return task == Task::kImageClassification || task == Task::kImageFeatures ||
         task == Task::kObjectDetection;
}

absl::StatusOr<ItemShape> MeasureItems(const std::vector<InputTensor>& inputs,
                                       const models::ModelInfo& info, int max_items) {
  if (IsImageTask(info.task)) return MeasureImages(inputs, info.task, max_items);
  const bool text = Find(inputs, "text") != nullptr;
  const bool ids = Find(inputs, "input_ids") != nullptr;
  if (text && ids) return BadInput("text", "given together with input_ids; send one");
  if (!text && !ids) return BadInput("text", "text or input_ids is needed and neither was given");
  absl::StatusOr<ItemShape> shape =
      text ? MeasureText(inputs, info.task) : MeasureTokens(inputs, info.task);
  if (!shape.ok()) return shape;
  if (auto status = CheckItemCount(*shape, info.task, max_items); !status.ok()) return status;
  if (auto status = MeasureDecoder(inputs, *shape); !status.ok()) return status;
  return shape;
}

absl::StatusOr<std::vector<Request>> BuildItems(const std::vector<InputTensor>& inputs,
                                                const models::ModelInfo& info,
                                                const InferParameters& parameters,
                                                bool keep_padding) {
  const InputTensor* text = Find(inputs, "text");
  const InputTensor* document = text;
  for (const std::string_view name : {"input_ids", "image", "pixel_values"}) {
    if (document == nullptr) document = Find(inputs, name);
  }
  if (text == nullptr && !parameters.global_tokens.empty()) {
    return BadField("parameter \"global_tokens\"",
                    "goes with text; with input_ids send global_attention_mask");
  }
  const bool has_pair =
      Find(inputs, "text_pair") != nullptr || Find(inputs, "input_ids_pair") != nullptr;
  Like<Request> like;
  like->task =
      info.task == Task::kTextClassification ? ClassificationTask(info, has_pair) : info.task;
  like->truncate = parameters.truncate;
  like->global_tokens = parameters.global_tokens;
  like->aggregation = parameters.aggregation;
  like->pooling = parameters.pooling;
  like->normalize = parameters.normalize;
  like->prompt = parameters.prompt;
  like->prompt_name = parameters.prompt_name;
  like->dimensions = parameters.dimensions;
  like->truncation_direction = parameters.truncation_direction;
  like->top_k = parameters.top_k;
  like->max_answer_tokens = parameters.max_answer_tokens;
  like->score_threshold = parameters.score_threshold;
  like->max_detections = parameters.max_detections;
  like->generation = parameters.generation;
  absl::StatusOr<std::vector<Request>> items = like.Copies(static_cast<size_t>(document->shape[0]));
  if (!items.ok()) return items;
  const absl::Status status = IsImageTask(info.task) ? AddImages(inputs, *items)
                              : text != nullptr      ? AddTexts(inputs, *items)
                                                     : AddTokens(inputs, keep_padding, *items);
  if (!status.ok()) return status;
  if (const InputTensor* start = Find(inputs, kDecoderInput)) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, ReadIntegers(*start));
    items->front().decoder_tokens.emplace().ids = std::move(ids);
  }
  return items;
}

}  // namespace longview::server
