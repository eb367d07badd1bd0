#include "server/api/generation_call.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "server/api/answer_bytes.h"
#include "server/api/item_group.h"
#include "server/exception_guard.h"

namespace longview::server {
namespace {

using models::Piece;
using models::Task;

// Turns the events of a job's items into its sink's. Lives as long as the group of the items.
class GenerationCall : public std::enable_shared_from_this<GenerationCall> {
 public:
  GenerationCall(ApiContext& context, const CallInfo& info, GenerationJob job, GenerationSink sink)
      : context_(context),
        info_(info),
        sequences_(SequencesPerItem(job)),
        job_(std::move(job)),
        sink_(std::move(sink)),
        not_admitted_(static_cast<int>(job_.items.size())) {}

  std::shared_ptr<PendingCall> Start() {
    const auto self = shared_from_this();
    return ItemGroup::Generate(
        context_, info_, job_.model, std::move(job_.items), sink_.on_pieces == nullptr,
        [self](GroupEnd end) { self->End(std::move(end)); },
        [this](const std::shared_ptr<ItemGroup>& group, size_t item) {
          return EventsOf(group, item);
        });
  }

 private:
  GenerationEvents EventsOf(const std::shared_ptr<ItemGroup>& group, size_t item) {
    GenerationEvents events;
    const auto self = shared_from_this();
    events.on_admitted = [self, group] {
      if (--self->not_admitted_ > 0 || group->over()) return;
      if (self->sink_.on_admitted != nullptr) self->sink_.on_admitted();
    };
    if (sink_.on_pieces == nullptr) return events;
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
        const absl::Status told = TellPrompt(first, std::move(piece), std::move(held));
        if (!told.ok()) return told;
        continue;
      }
      piece.index += first;
      others.push_back(std::move(piece));
    }
    return others.empty() ? absl::OkStatus() : sink_.on_pieces(std::move(others));
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
      if (absl::Status fits = bytes.Add(all - bytes.bytes()); !fits.ok()) return fits;
    }
    const auto held = std::make_shared<const Held>(std::move(piece), std::move(bytes));
    sink_.on_echo({{held, &held->piece}, first, sequences_});
    return absl::OkStatus();
  }

  void End(GroupEnd end) {
    CallRecorder::Counts counts = CountsOf(end);
    absl::Status status = end.status;
    if (status.ok()) {
      for (const Completed& item : end.completed) counts.tokens += item.answer.usage.output_tokens;
      if (sink_.answer != nullptr) status = sink_.answer(end.completed);
    } else {
      if (job_.words != nullptr) status = job_.words(status, end.failed, end.completed.size());
      status = WithParam(status);
    }
    const ModelLabels labels = {job_.model->name, job_.model->version};
    status = context_.recorder.Done(info_, labels, status, counts);
    if (!status.ok()) end.completed.clear();
    sink_.on_end({status, std::move(end.completed), std::move(end.held)});
  }

  ApiContext& context_;
  const CallInfo info_;
  const int sequences_;
  GenerationJob job_;  // Its items are moved to the engine by Start.
  GenerationSink sink_;
  std::atomic<int> not_admitted_;
};

}  // namespace

GenerationSink Into(std::shared_ptr<PieceFlow> flow, bool pieces) {
  GenerationSink sink;
  sink.on_admitted = [flow] { flow->Admit(); };
  if (pieces) {
    sink.on_pieces = [flow](std::vector<Piece> more) { return flow->Add(std::move(more)); };
    sink.on_echo = [flow](Echo echo) { flow->AddEcho(std::move(echo)); };
  }
  sink.on_end = [flow](GenerationEnd end) { flow->End(std::move(end)); };
  return sink;
}

int SequencesPerItem(const GenerationJob& job) {
  const models::GenerationOptions& options = *job.items.front().generation;
  return std::max(1, options.num_return_sequences.value_or(job.model->model->info().sequences));
}

std::shared_ptr<PendingCall> StartGeneration(ApiContext& context, const CallInfo& info,
                                             GenerationJob job, GenerationSink sink) {
  return std::make_shared<GenerationCall>(context, info, std::move(job), std::move(sink))->Start();
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
