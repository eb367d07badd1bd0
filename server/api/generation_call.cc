#include "server/api/generation_call.h"
#include "server/scheduler/steady_clock.h"

#include <algorithm>
#include <mutex>
#include <utility>


namespace longview::server {
namespace {

using models::Piece;
using models::Task;

// Lives until its last item has answered.
class GenerationCall : public std::enable_shared_from_this<GenerationCall> {
 public:
  GenerationCall(ApiContext& context, CallInfo info, GenerationJob job, GenerationSink sink)
      : context_(context),
        info_(std::move(info)),
        sequences_(SequencesPerItem(job)),
        job_(std::move(job)),
        sink_(std::move(sink)),
        pending_(std::make_shared<PendingCall>(context.engine)),
        completed_(job_.items.size()),
        not_admitted_(job_.items.size()),
        not_done_(job_.items.size()) {}

  std::shared_ptr<PendingCall> Start() {
    const auto self = shared_from_this();
    for (size_t i = 0; i < job_.items.size(); ++i) {
      pending_->Generate(
          job_.model, std::move(job_.items[i]), info_, EventsOf(i),
          [self, i](absl::StatusOr<Completed> completed) { self->Done(i, std::move(completed)); });
    }
    return pending_;
  }

 private:
  GenerationEvents EventsOf(size_t item) {
    GenerationEvents events;
    events.on_admitted = [self = shared_from_this()] { self->Admitted(); };
    if (sink_.on_pieces != nullptr) {
      events.on_pieces = [self = shared_from_this(), item](std::vector<Piece> pieces) {
        self->Pieces(item, std::move(pieces));
      };
    }
    return events;
  }

  void Admitted() {
    {
      std::lock_guard lock(mutex_);
      if (--not_admitted_ > 0 || failed_) return;
    }
    if (sink_.on_admitted != nullptr) sink_.on_admitted();
  }

  void Pieces(size_t item, std::vector<Piece> pieces) {
    {
      std::lock_guard lock(mutex_);
      if (failed_) return;
    }
    const absl::Status taken = sink_.on_pieces(Renumbered(item, std::move(pieces)));
    if (taken.ok()) return;
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(failed_, true)) return;
    }
    Fail(item, taken);
  }

  std::vector<Piece> Renumbered(size_t item, std::vector<Piece> pieces) const {
    const int first = static_cast<int>(item) * sequences_;
    if (first == 0 && std::none_of(pieces.begin(), pieces.end(), [](auto& p) { return p.echo; })) {
      return pieces;
    }
    std::vector<Piece> out;
    for (Piece& piece : pieces) {
      const int copies = piece.echo ? sequences_ : 1;
      for (int i = 1; i < copies; ++i) out.emplace_back(piece).index = first + i;
      piece.index = piece.echo ? first : first + piece.index;
      out.push_back(std::move(piece));
    }
    return out;
  }

  void Done(size_t item, absl::StatusOr<Completed> completed) {
    bool first_failure = false;
    bool last = false;
    {
      std::lock_guard lock(mutex_);
      first_failure = !completed.ok() && !failed_;
      failed_ = failed_ || !completed.ok();
      if (completed.ok()) completed_[item] = *std::move(completed);
      last = --not_done_ == 0 && !failed_;
    }
    if (first_failure) {
      Fail(item, completed.status());
    } else if (last) {
      Finish();
    }
  }

  void Fail(size_t item, const absl::Status& status) {
    // Nobody waits for the others any more. They still come by here.
    pending_->Cancel();
    context_.statistics.RequestFailed(job_.model->name, job_.model->version,
                                      absl::ToDoubleSeconds(SteadyNow() - info_.arrival));
    const absl::Status told =
        WithParam(job_.words == nullptr ? status : job_.words(status, item, completed_.size()));
    sink_.on_end({context_.recorder.Done(info_, Labels(), told,
                                         {.items = static_cast<int>(completed_.size())}),
                  {}});
  }

  void Finish() {
    int64_t tokens = 0;
    for (const Completed& item : completed_) {
      context_.statistics.ItemDone(job_.model->name, job_.model->version, item);
      tokens += item.answer.usage.input_tokens + item.answer.usage.output_tokens;
    }
    const auto items = static_cast<int>(completed_.size());
    absl::Status status;
    if (sink_.answer != nullptr) status = sink_.answer(completed_);
    status = context_.recorder.Done(info_, Labels(), status, {items, tokens});
    if (!status.ok()) completed_.clear();
    sink_.on_end({status, std::move(completed_)});
  }

  ModelLabels Labels() const { return {job_.model->name, job_.model->version}; }

  ApiContext& context_;
  const CallInfo info_;
  const int sequences_;
  GenerationJob job_;  // Its items are moved to the engine by Start.
  GenerationSink sink_;
  const std::shared_ptr<PendingCall> pending_;

  std::mutex mutex_;
  std::vector<Completed> completed_;  // Under mutex_ until the last item is done.
  size_t not_admitted_;               // Under mutex_, as all below.
  size_t not_done_;
  bool failed_ = false;
};

}  // namespace

GenerationSink Into(std::shared_ptr<PieceFlow> flow, bool pieces) {
  GenerationSink sink;
  sink.on_admitted = [flow] { flow->Admit(); };
  if (pieces) {
    sink.on_pieces = [flow](std::vector<Piece> more) { return flow->Add(std::move(more)); };
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
