#include "server/api/calls/generation_call.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "models/status_macros.h"
#include "server/api/calls/answer_bytes.h"
#include "server/api/calls/item_group.h"
#include "server/exception_guard.h"

namespace longview::server {
namespace {

using models::Piece;
using models::Task;

// Joins the events of a job's items. Lives as long as the group of the items.
class GenerationCall : public std::enable_shared_from_this<GenerationCall> {
 public:
  using Done = absl::AnyInvocable<void(GenerationEnd)>;

  // `flow`: null unless somebody takes pieces.
  GenerationCall(ApiContext& context, const CallInfo& info, GenerationJob job,
                 std::shared_ptr<PieceFlow> flow, Done done)
      : context_(context),
        info_(info),
        sequences_(SequencesPerItem(job)),
        job_(std::move(job)),
        flow_(std::move(flow)),
        done_(std::move(done)),
        not_admitted_(static_cast<int>(job_.items.size())) {}

  std::shared_ptr<PendingCall> Start() {
    const auto self = shared_from_this();
    return ItemGroup::Generate(
        context_, info_, job_.model, std::move(job_.items), /*texts=*/flow_ == nullptr,
        [self](GroupEnd end) { self->End(std::move(end)); },
        [this](const std::shared_ptr<ItemGroup>& group, size_t item) {
          return EventsOf(group, item);
        });
  }

 private:
  GenerationEvents EventsOf(const std::shared_ptr<ItemGroup>& group, size_t item) {
    GenerationEvents events;
    if (flow_ == nullptr) return events;
    const auto self = shared_from_this();
    events.on_admitted = [self, group] {
      if (--self->not_admitted_ == 0 && !group->over()) self->flow_->Admit();
    };
    events.on_pieces = [self, group, item](std::vector<Piece> pieces) {
      if (group->over()) return;
      // A piece that is lost, for want of memory, is an error and not a gap.
      const absl::Status taken =
          Guarded([&] { return self->Forward(*group, item, std::move(pieces)); });
      if (!taken.ok()) group->Fail(item, taken);
    };
    return events;
  }

  absl::Status Forward(ItemGroup& group, size_t item, std::vector<Piece> pieces) {
    const int first = static_cast<int>(item) * sequences_;
    std::vector<Piece> others;
    for (Piece& piece : pieces) {
      if (piece.echo) {
        AnswerBytes held = group.TakeExpected(item);
        RETURN_IF_ERROR(TellPrompt(first, std::move(piece), std::move(held)));
        continue;
      }
      piece.index += first;
      others.push_back(std::move(piece));
    }
    return others.empty() ? absl::OkStatus() : flow_->Add(std::move(others));
  }

  // `bytes`: those that are counted for it already.
  absl::Status TellPrompt(int first, Piece piece, AnswerBytes bytes) {
    struct Held {
      Piece piece;
      AnswerBytes bytes;
    };
    if (bytes.bytes() == 0) bytes = AnswerBytes(context_.options.bytes, info_.client);
    const size_t all = MemoryOf(piece);
    if (all > bytes.bytes()) {
      RETURN_IF_ERROR(bytes.Add(all - bytes.bytes()));
    }
    const auto held = std::make_shared<const Held>(Held{std::move(piece), std::move(bytes)});
    flow_->AddEcho({{held, &held->piece}, first, sequences_});
    return absl::OkStatus();
  }

  void End(GroupEnd end) {
    CallRecorder::Counts counts = CountsOf(end);
    absl::Status status = end.status;
    if (status.ok()) {
      for (const Completed& item : end.completed) counts.tokens += item.answer.usage.output_tokens;
      if (job_.answer != nullptr) status = job_.answer(end.completed);
    } else {
      if (job_.words != nullptr) status = job_.words(status, end.failed, end.completed.size());
      status = WithParam(status);
    }
    const ModelLabels labels = {job_.model->name, job_.model->version};
    status = context_.recorder.Done(info_, labels, status, counts);
    if (!status.ok()) end.completed.clear();
    done_({status, std::move(end.completed), std::move(end.held)});
  }

  ApiContext& context_;
  const CallInfo info_;
  const int sequences_;
  GenerationJob job_;  // Its items are moved to the engine by Start.
  const std::shared_ptr<PieceFlow> flow_;
  Done done_;
  std::atomic<int> not_admitted_;
};

}  // namespace

int SequencesPerItem(const GenerationJob& job) {
  const models::GenerationOptions& options = *job.items.front().generation;
  return std::max(1, options.num_return_sequences.value_or(job.model->model->info().sequences));
}

std::shared_ptr<PendingCall> StartGeneration(ApiContext& context, const CallInfo& info,
                                             GenerationJob job, std::shared_ptr<PieceFlow> flow) {
  GenerationCall::Done done = [flow](GenerationEnd end) { flow->End(std::move(end)); };
  return std::make_shared<GenerationCall>(context, info, std::move(job), std::move(flow),
                                          std::move(done))
      ->Start();
}

std::shared_ptr<PendingCall> CollectGeneration(ApiContext& context, const CallInfo& info,
                                               GenerationJob job,
                                               absl::AnyInvocable<void(GenerationEnd)> done) {
  return std::make_shared<GenerationCall>(context, info, std::move(job), nullptr, std::move(done))
      ->Start();
}

absl::StatusOr<ModelHandle> FindGenerator(ApiContext& context, std::string_view name,
                                          std::string_view version) {
  absl::StatusOr<ModelHandle> causal =
      FindModelForTask(context, name, version, Task::kTextGeneration);
  if (causal.ok()) return causal;
  absl::StatusOr<ModelHandle> other =
      FindModelForTask(context, name, version, Task::kText2TextGeneration);
  return other.ok() ? other : causal;
}

}  // namespace longview::server
