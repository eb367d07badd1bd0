// POST /v1/embeddings, OpenAI's shape.
#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/api/calls/context.h"
#include "server/api/typed/text_requests.h"
#include "server/http/context.h"
#include "server/http/json/body_error.h"
#include "server/http/json/writer.h"
#include "server/http/message.h"
#include "server/http/v1/embeddings_request.h"
#include "server/http/vector_form.h"
#include "server/log/log.h"

namespace longview::server {
namespace {

// Thread-safe.
class TokenIdsWarning {
 public:
  // `log` null: nobody reads it. Outlives this.
  TokenIdsWarning(Log* log, bool refuse) : log_(log), refuse_(refuse) {}

  // INVALID_ARGUMENT if the server takes none (--refuse_token_ids).
  absl::Status Check() const;

  // Adds the warning to an answer of `model`; the first one of each model is told of in the log.
  void AddTo(const std::string& model, HttpResponse* response);

 private:
  Log* const log_;
  const bool refuse_;
  absl::Mutex mutex_;
  std::set<std::string> told_ ABSL_GUARDED_BY(mutex_);  // Models, by name.
};

constexpr char kWarning[] =
    "input holds token ids, which are taken as the model's own; a client with another tokenizer "
    "must "
    "send text (LangChain's OpenAIEmbeddings: check_embedding_ctx_length=False)";

absl::Status TokenIdsWarning::Check() const {
  if (!refuse_) return absl::OkStatus();
  return FieldError("input",
                    "holds token ids, which --refuse_token_ids refuses: send text (LangChain's "
                    "OpenAIEmbeddings: check_embedding_ctx_length=False)");
}

void TokenIdsWarning::AddTo(const std::string& model, HttpResponse* response) {
  response->headers.emplace_back("x-longview-warning", kWarning);
  if (log_ == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    if (!told_.insert(model).second) return;
  }
  log_->Warning("token ids on /v1/embeddings",
                {{"model", model}, {"warning", kWarning}, {"refuse_with", "--refuse_token_ids"}});
}

using longview::v1::EmbedResponse;

// How `data` is written.
struct EntryForm {
  VectorForm vectors;
  bool places;  // Whether chunks say where they stand.
};

// The entries of `data` for input number `input`: one, or one per chunk. `index` counts through.
void AppendEntries(const EmbedResponse& item, size_t input, const EntryForm& form, size_t* index,
                   std::string* out) {
  const auto size = static_cast<size_t>(item.embedding_size());
  const auto entries = static_cast<size_t>(std::max(item.chunks_size(), 1));
  const std::span<const float> values(item.embedding().data(), size);
  const size_t width = size / entries;
  for (size_t i = 0; i < entries; ++i, ++*index) {
    out->append(absl::StrCat(*index > 0 ? "," : "", R"({"object":"embedding","index":)", *index));
    if (item.chunks_size() > 0 && form.places) {
      const longview::v1::TextRange& chunk = item.chunks(static_cast<int>(i));
      out->append(absl::StrCat(R"(,"chunk":{"input":)", input, R"(,"start":)", chunk.start(),
                               R"(,"end":)", chunk.end(), "}"));
    }
    out->append(R"(,"embedding":)");
    AppendVector(values.subspan(i * width, width), form.vectors, out);
    out->push_back('}');
  }
}

// How the chunks were read; of texts that were read in different ways, how the longer ones were.
std::string ChunkingOf(std::span<const EmbedResponse> answers) {
  std::string chunking;
  for (const EmbedResponse& answer : answers) {
    if (chunking.empty() || answer.chunking() != "late") chunking = answer.chunking();
  }
  return chunking;
}

// The answers to all inputs, in order, as one. `warning` null: not due.
HttpResponse JoinAnswers(const Exchange& exchange, std::span<const EmbedResponse> answers,
                         const EntryForm& form, TokenIdsWarning* warning) {
  HttpResponse response;
  std::string& body = response.body;
  body = R"({"id":)";
  AppendJsonString(absl::StrCat("embd-", exchange.info().request_id), &body);
  body += R"(,"object":"list","data":[)";
  size_t index = 0;
  int64_t tokens = 0;
  int64_t truncated = 0;
  double queue = 0;
  double compute = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const EmbedResponse& item = answers[i];
    AppendEntries(item, i, form, &index, &body);
    tokens += item.usage().input_tokens();
    truncated += item.usage().truncated_tokens();
    queue = std::max(queue, item.timing().queue_seconds());
    compute = std::max(compute, item.timing().compute_seconds());
  }
  body += R"(],"model":)";
  AppendJsonString(answers.front().model(), &body);
  if (const std::string chunking = ChunkingOf(answers); !chunking.empty()) {
    absl::StrAppend(&body, R"(,"chunking":")", chunking, "\"");
  }
  body += absl::StrCat(R"(,"usage":{"prompt_tokens":)", tokens, R"(,"total_tokens":)", tokens,
                       R"(,"truncated_tokens":)", truncated, "}}");
  AddServerTiming(queue, compute, &response);
  if (warning != nullptr) warning->AddTo(answers.front().model(), &response);
  return response;
}

// Writes that answer, or why it cannot be.
void RespondJoined(HttpContext& context, const ExchangePtr& exchange,
                   std::span<const EmbedResponse> answers, const EntryForm& form,
                   TokenIdsWarning* warning) {
  HttpResponse joined = JoinAnswers(*exchange, answers, form, warning);
  if (absl::Status status = CheckAnswerSize(context, joined.body); !status.ok()) {
    return exchange->Fail(status);
  }
  exchange->Respond(std::move(joined));
}

// Bytes of so many answers' numbers as JSON, at most.
size_t JsonBytes(std::span<const EmbedResponse> answers) {
  size_t numbers = 0;
  for (const EmbedResponse& answer : answers) {
    numbers += static_cast<size_t>(answer.embedding_size());
  }
  return kJsonGrowth * sizeof(float) * numbers;
}

// The inputs of one request for chunks, each a call of its own, joined when the last is answered.
// Thread-safe; kept alive by the calls.
class EmbeddingsCall : public std::enable_shared_from_this<EmbeddingsCall> {
 public:
  // `warning`: where inputs are token ids, else null.
  EmbeddingsCall(HttpContext& context, ExchangePtr exchange, const EmbeddingsRequest& request,
                 std::shared_ptr<TokenIdsWarning> warning)
      : context_(context),
        exchange_(std::move(exchange)),
        warning_(std::move(warning)),
        form_{request.form, !request.late_chunking},
        answers_(request.items.size()),
        left_(request.items.size()) {}

  // False once the answer is known: the rest need not start.
  bool Add(Api::Pending pending) {
    {
      absl::MutexLock lock(&mutex_);
      if (!over_) {
        pending_.push_back(std::move(pending));
        return true;
      }
    }
    Api::Cancel(pending);
    return false;
  }

  void Done(size_t index, absl::StatusOr<EmbedResponse> response) {
    if (response.ok()) {
      Keep(index, *std::move(response));
    } else {
      Fail(index, response.status());
    }
    if (left_.fetch_sub(1) > 1 || failed_.load()) return;
    WriteSized(context_, exchange_, JsonBytes(answers_), [self = shared_from_this()] {
      RespondJoined(self->context_, self->exchange_, self->answers_, self->form_,
                    self->warning_.get());
    });
  }

  void Cancel() {
    std::vector<Api::Pending> pending;
    {
      absl::MutexLock lock(&mutex_);
      over_ = true;
      pending = std::move(pending_);
    }
    for (const Api::Pending& call : pending) Api::Cancel(call);
  }

 private:
  // The vectors so far are a bound of the body before it is written.
  void Keep(size_t index, EmbedResponse response) {
    const size_t own = sizeof(float) * static_cast<size_t>(response.embedding_size());
    const size_t sum = bytes_.fetch_add(own) + own;
    const size_t limit = context_.api.options().max_message_bytes;
    if (sum > limit) return Fail(index, AnswerTooLarge(sum, limit));
    answers_[index] = std::move(response);
  }

  // The first failure answers for all; the others are stopped.
  void Fail(size_t index, const absl::Status& status) {
    if (failed_.exchange(true)) return;
    const absl::Status placed = form_.places ? status : OfLateInputs(status);
    exchange_->Fail(answers_.size() > 1 ? OfElement(placed, "input", index)
                                        : OfField(placed, "input"));
    Cancel();
  }

  HttpContext& context_;
  const ExchangePtr exchange_;
  const std::shared_ptr<TokenIdsWarning> warning_;  // Null: not due.
  const EntryForm form_;
  std::vector<EmbedResponse> answers_;  // Each written by its own call, read by the last.
  std::atomic<size_t> left_;
  std::atomic<size_t> bytes_{0};  // Vectors so far.
  std::atomic<bool> failed_{false};
  absl::Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Api::Pending> pending_ ABSL_GUARDED_BY(mutex_);
};

bool HasTokenIds(const EmbeddingsRequest& request) {
  return std::any_of(request.items.begin(), request.items.end(),
                     [](const auto& item) { return item.token_ids_size() > 0; });
}

bool HasChunks(const EmbeddingsRequest& request) {
  return std::any_of(request.items.begin(), request.items.end(),
                     [](const auto& item) { return AsksForChunks(item); });
}

// One vector for each input: all are admitted together, and are one call.
void EmbedInputs(HttpContext& context, const ExchangePtr& exchange, EmbeddingsRequest request,
                 std::shared_ptr<TokenIdsWarning> warning) {
  ListRequest<longview::v1::EmbedRequest> list;
  list.model = request.items.front().model();
  list.version = request.items.front().version();
  list.field = "input";
  for (auto& item : request.items) list.items.push_back(std::move(item));
  const EntryForm form = {request.form, /*places=*/true};
  const Api::Pending pending = context.api.EmbedList(
      exchange->info(), std::move(list),
      [&context, exchange, form,
       warning = std::move(warning)](absl::StatusOr<ListAnswer<EmbedResponse>> answer) {
        if (!answer.ok()) return exchange->Fail(answer.status());
        std::vector<EmbedResponse> answers;
        for (absl::StatusOr<EmbedResponse>& result : answer->results) {
          answers.push_back(*std::move(result));
        }
        answers.front().set_model(answer->model.model);
        const size_t bytes = JsonBytes(answers);
        WriteSized(context, exchange, bytes,
                   [&context, exchange, form, warning, answers = std::move(answers)] {
                     RespondJoined(context, exchange, answers, form, warning.get());
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

void Embeddings(HttpContext& context, const ExchangePtr& exchange,
                std::shared_ptr<TokenIdsWarning> warning) {
  absl::StatusOr<EmbeddingsRequest> request = ParseEmbeddings(
      std::exchange(exchange->mutable_request().body, {}), context.api.options().max_message_bytes);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  if (HasTokenIds(*request)) {
    const absl::Status taken = warning->Check();
    if (!taken.ok()) return Refuse(context, exchange, taken);
  } else {
    warning = nullptr;
  }
  if (!HasChunks(*request)) {
    return EmbedInputs(context, exchange, *std::move(request), std::move(warning));
  }
  auto call = std::make_shared<EmbeddingsCall>(context, exchange, *request, std::move(warning));
  exchange->OnCancel([weak = std::weak_ptr(call)] {
    if (const auto self = weak.lock()) self->Cancel();
  });
  CallInfo info = exchange->info();
  info.refused_together = request->items.size();
  for (size_t i = 0; i < request->items.size(); ++i) {
    const bool goes_on = call->Add(context.api.Embed(
        info, request->items[i],
        [call, i](absl::StatusOr<EmbedResponse> response) { call->Done(i, std::move(response)); }));
    if (!goes_on) break;
  }
}

}  // namespace

void AddEmbeddings(HttpContext& context, Router& router) {
  const auto warning = std::make_shared<TokenIdsWarning>(context.log, context.refuse_token_ids);
  router.Add(Verb::kPost, "/v1/embeddings",
             [&context, warning](const ExchangePtr& exchange, const PathParameters&) {
               Embeddings(context, exchange, warning);
             });
}

}  // namespace longview::server
