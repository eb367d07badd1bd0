#include "models/encoder/prepare.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "models/encoder/chunk_windows.h"
#include "models/encoder/draft.h"
#include "models/encoder/sentence_wishes.h"
#include "models/encoder/text_chunks.h"
#include "models/status_macros.h"
#include "models/text/code_point_index.h"
#include "models/text/tokenizer_codec.h"
#include "models/text/utf8.h"

namespace longview::models {
namespace {

// Tokens of a text in chunks.
constexpr int kMostTokens = 1 << 22;
// Windows and separate chunks together hold at most so many times the text.
constexpr int64_t kMostCopies = 8;

class ChunkPlanner {
 public:
  ChunkPlanner(const EncoderFrontEnd& front, const Request& request)
      : front_(front), request_(request) {}

  absl::StatusOr<ChunkPlan> Plan();

 private:
  absl::Status Read();
  void FindBody(const std::string& prompt);
  ChunkPlan Late();
  absl::StatusOr<ChunkPlan> Windows();
  absl::StatusOr<ChunkPlan> Separate();

  const char* field() const { return request_.chunks.empty() ? "chunk_tokens" : "chunks"; }
  int32_t tokens() const { return static_cast<int32_t>(encoding_.ids.size()); }
  int32_t body() const { return body_end_ - body_begin_; }
  // Tokens of the text that the model reads at once.
  int32_t room() const { return front_.max_tokens - (tokens() - body()); }
  // The text's tokens from the first of chunk i to its last.
  TokenRange SpanOf(size_t i) const;
  // INVALID_ARGUMENT for a chunk whose length does not fit into the model's limit.
  absl::Status CheckLengths(absl::FunctionRef<int32_t(size_t)> length) const;
  absl::Status CheckGlobals() const;
  // The request without its text.
  Request Item() const;
  // The item that reads the text's tokens [begin, end) between those around the text.
  Request Window(const TokenRange& window) const;
  // Gives a window's chunks, which are ranges of the text's, their own tokens; `before` tokens of
  // the text stand in front of the window.
  void TakePositions(int32_t before, TokenChunks& own) const;

  const EncoderFrontEnd& front_;
  const Request& request_;
  std::shared_ptr<const std::string> prompt_;
  Encoding encoding_;  // The prompt's tokens and the text's in the template.
  TextChunks chunks_;
  int32_t body_begin_ = 0, body_end_ = 0;  // The text's tokens in the encoding.
};

absl::StatusOr<ChunkPlan> ChunkPlanner::Plan() {
  RETURN_IF_ERROR(CheckChunkSettings(request_));
  if (front_.tokenizer == nullptr) {
    return BadRequest("chunks", "the model's tokenizer does not say where its tokens stand");
  }
  ASSIGN_OR_RETURN(const bool parts, PoolsParts(front_, request_));
  RETURN_IF_ERROR(Read());
  absl::StatusOr<ChunkPlan> plan = ChunkPlan();
  if (!parts) {
    plan = Separate();
  } else if (tokens() > front_.max_tokens) {
    plan = Windows();
  } else {
    plan = Late();
  }
  if (plan.ok()) plan->ranges = std::move(chunks_.ranges);
  return plan;
}

absl::Status ChunkPlanner::Read() {
  ASSIGN_OR_RETURN(std::string prompt, ResolvePrompt(front_.sentence, request_));
  prompt_ = std::make_shared<const std::string>(std::move(prompt));
  const EncodeOptions options = {.max_length = kMostTokens};
  absl::StatusOr<EncodeResult> result =
      front_.tokenizer->Encode(*prompt_ + *request_.text, options);
  if (!result.ok()) return BadRequest("text", std::string(result.status().message()));
  if (result->tokens_cut > 0) {
    return BadRequest(
        "text", absl::StrCat("more tokens than ", kMostTokens, ", the most of a text in chunks"));
  }
  encoding_ = std::move(result->encoding);
  if (auto problem = ProblemOfRows(encoding_.ids, front_.facts().vocab, front_.tokenizer)) {
    return BadRequest("text", *problem + "; leave it out of the text");
  }
  FindBody(*prompt_);
  const EncoderFacts& facts = front_.facts();
  const int32_t masked = facts.pad_masks ? facts.pad : -1;
  ASSIGN_OR_RETURN(TextChunks chunks, FindTextChunks(request_, *prompt_, encoding_, masked));
  chunks_ = std::move(chunks);
  return absl::OkStatus();
}

// The template's tokens and the prompt's go around every window.
void ChunkPlanner::FindBody(const std::string& prompt) {
  const int64_t before = CodePoints(prompt);
  body_begin_ = 0;
  body_end_ = tokens();
  const auto special = [&](int32_t t) {
    return encoding_.special_mask[static_cast<size_t>(t)] != 0;
  };
  const auto of_prompt = [&](int32_t t) {
    return before > 0 && encoding_.offsets[static_cast<size_t>(t)].end <= before;
  };
  while (body_begin_ < body_end_ && special(body_begin_)) ++body_begin_;
  while (body_end_ > body_begin_ && special(body_end_ - 1)) --body_end_;
  while (body_begin_ < body_end_ && of_prompt(body_begin_)) ++body_begin_;
}

TokenRange ChunkPlanner::SpanOf(size_t i) const {
  const auto [begin, end] = chunks_.tokens.chunks[i];
  const std::vector<int32_t>& positions = chunks_.tokens.positions;
  const int32_t first = positions[static_cast<size_t>(begin)];
  const int32_t last = positions[static_cast<size_t>(end) - 1];
  return {first - body_begin_, last + 1 - body_begin_};
}

absl::Status ChunkPlanner::CheckLengths(absl::FunctionRef<int32_t(size_t)> length) const {
  if (room() < 1) {
    return BadRequest("prompt", absl::StrCat("its tokens leave no room for text within the model's "
                                             "limit of ",
                                             front_.max_tokens));
  }
  for (size_t i = 0; i < chunks_.tokens.chunks.size(); ++i) {
    const int32_t tokens = length(i);
    if (tokens <= room()) continue;
    const std::string name = request_.chunks.empty() ? field() : absl::StrCat(field(), "[", i, "]");
    return BadRequest(name, absl::StrCat("a chunk of ", tokens, " tokens is longer than the ",
                                         room(), " tokens of text that the model, with a limit of ",
                                         front_.max_tokens, ", reads at once"));
  }
  return absl::OkStatus();
}

absl::Status ChunkPlanner::CheckGlobals() const {
  if (!request_.global_positions) return absl::OkStatus();
  return BadRequest("global_positions", "means nothing in a text that is read in several parts");
}

Request ChunkPlanner::Item() const {
  Request item;
  item.task = request_.task;
  item.pooling = request_.pooling;
  item.normalize = request_.normalize;
  item.dimensions = request_.dimensions;
  item.global_positions = request_.global_positions;
  item.truncation_direction = request_.truncation_direction;
  item.tensors = request_.tensors;
  item.typed = request_.typed;
  return item;
}

Request ChunkPlanner::Window(const TokenRange& window) const {
  Request item = Item();
  item.truncate = false;
  const auto join = [&](const auto& from, auto& to) {
    const auto at = [&](int32_t t) { return from.begin() + t; };
    to.assign(at(0), at(body_begin_));
    to.insert(to.end(), at(body_begin_ + window.begin), at(body_begin_ + window.end));
    to.insert(to.end(), at(body_end_), from.end());
  };
  TokenInput& tokens = item.tokens.emplace();
  join(encoding_.ids, tokens.ids);
  if (ReadsTypes(front_)) join(encoding_.type_ids, tokens.token_type_ids);
  return item;
}

ChunkPlan ChunkPlanner::Late() {
  ChunkPlan plan;
  plan.chunking = Chunking::kLate;
  plan.items.push_back(Window({0, body()}));
  for (int i = 0; i < std::ssize(chunks_.tokens.chunks); ++i) plan.sources.push_back({0, i});
  plan.items[0].token_chunks = std::move(chunks_.tokens);
  return plan;
}

absl::StatusOr<ChunkPlan> ChunkPlanner::Windows() {
  RETURN_IF_ERROR(CheckGlobals());
  std::vector<TokenRange> spans;
  for (size_t i = 0; i < chunks_.tokens.chunks.size(); ++i) spans.push_back(SpanOf(i));
  const auto length = [&](size_t i) { return spans[i].end - spans[i].begin; };
  RETURN_IF_ERROR(CheckLengths(length));
  // More would read the text more than kMostCopies times.
  const auto most = static_cast<int>(room() - (room() + kMostCopies - 1) / kMostCopies);
  const int overlap = request_.window_overlap.value_or(std::min(front_.max_tokens / 8, most));
  if (overlap < 0 || overlap > most) {
    return BadRequest("window_overlap",
                      absl::StrCat(overlap, " is not in [0, ", most, "], for windows of ", room(),
                                   " tokens of text"));
  }
  const WindowLayout layout = LayWindows(body(), room(), overlap, spans);
  if (std::ssize(layout.windows) * room() > kMostCopies * std::max(body(), room())) {
    return BadRequest(field(), absl::StrCat("need ", layout.windows.size(), " windows of ", room(),
                                            " tokens, more than ", kMostCopies, " times the text"));
  }
  ChunkPlan plan;
  plan.chunking = Chunking::kWindows;
  for (const TokenRange& window : layout.windows) {
    plan.items.push_back(Window(window));
    plan.items.back().token_chunks.emplace();
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    const int window = layout.window_of[i];
    TokenChunks& own = *plan.items[static_cast<size_t>(window)].token_chunks;
    plan.sources.push_back({window, static_cast<int>(own.chunks.size())});
    own.chunks.push_back(chunks_.tokens.chunks[i]);
  }
  for (size_t w = 0; w < plan.items.size(); ++w) {
    TakePositions(layout.windows[w].begin, *plan.items[w].token_chunks);
  }
  return plan;
}

void ChunkPlanner::TakePositions(int32_t before, TokenChunks& own) const {
  int32_t begin = own.chunks.front().begin, end = 0;
  for (const TokenRange& chunk : own.chunks) {
    begin = std::min(begin, chunk.begin);
    end = std::max(end, chunk.end);
  }
  for (int32_t t = begin; t < end; ++t) {
    own.positions.push_back(chunks_.tokens.positions[static_cast<size_t>(t)] - before);
  }
  for (TokenRange& chunk : own.chunks) {
    chunk.begin -= begin;
    chunk.end -= begin;
  }
}

absl::StatusOr<ChunkPlan> ChunkPlanner::Separate() {
  RETURN_IF_ERROR(CheckGlobals());
  const auto count = [this](size_t i) {
    const auto [begin, end] = chunks_.tokens.chunks[i];
    return end - begin;
  };
  RETURN_IF_ERROR(CheckLengths(count));
  const CodePointIndex index(*request_.text);
  ChunkPlan plan;
  plan.chunking = Chunking::kSeparate;
  size_t bytes = 0;
  for (const auto& [start, end] : chunks_.ranges) {
    Request item = Item();
    item.text = index.Slice(start, end);
    item.shared_prompt = prompt_;
    // Cut within a word, a text may have more tokens than it has within the whole.
    item.truncate = true;
    bytes += item.text->size();
    if (bytes > kMostCopies * request_.text->size()) {
      return BadRequest(field(), absl::StrCat("overlap so much that together they are more than ",
                                              kMostCopies, " times the text"));
    }
    plan.sources.push_back({static_cast<int>(plan.items.size()), 0});
    plan.items.push_back(std::move(item));
  }
  return plan;
}

}  // namespace

absl::StatusOr<ChunkPlan> PlanTextChunks(const EncoderFrontEnd& front, const Request& request) {
  return ChunkPlanner(front, request).Plan();
}

}  // namespace longview::models
