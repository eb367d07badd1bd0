#include "server/api/calls/item_group.h"

#include <utility>

#include "server/scheduler/steady_clock.h"

namespace longview::server {

CallRecorder::Counts CountsOf(const GroupEnd& end) {
  CallRecorder::Counts counts{.items = static_cast<int>(end.completed.size())};
  if (!end.status.ok()) return counts;
  for (const Completed& item : end.completed) {
    const models::ItemUsage& usage = item.answer.usage;
    counts.tokens += usage.input_tokens;
    counts.pixels += int64_t{usage.width} * usage.height;
  }
  return counts;
}

std::shared_ptr<PendingCall> ItemGroup::Start(ApiContext& context, const CallInfo& info,
                                              ModelHandle model, std::vector<models::Request> items,
                                              OnFailure on_failure, Done done, Admitted admitted,
                                              std::shared_ptr<PendingCall> pending_call) {
  // The joined answers are counted by their own code.
  Done counted = [done = std::move(done)](GroupEnd end) mutable {
    end.held = {};
    done(std::move(end));
  };
  const std::shared_ptr<ItemGroup> group(
      new ItemGroup(context, info, std::move(model), items.size(), on_failure, true,
                    std::move(counted), std::move(pending_call)));
  PendingCall& pending = *group->pending_;
  if (admitted == Admitted::kTogether) {
    std::vector<Reply<Completed>> replies;
    for (size_t i = 0; i < items.size(); ++i) replies.push_back(group->ReplyOf(i));
    pending.SubmitTogether(group->model_, std::move(items), group->info_, std::move(replies));
    return group->pending_;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    pending.Submit(group->model_, std::move(items[i]), group->info_, group->ReplyOf(i));
  }
  return group->pending_;
}

std::shared_ptr<PendingCall> ItemGroup::Generate(ApiContext& context, const CallInfo& info,
                                                 ModelHandle model,
                                                 std::vector<models::Request> items, bool texts,
                                                 Done done, EventsOf events_of) {
  const std::shared_ptr<ItemGroup> group(new ItemGroup(context, info, std::move(model),
                                                       items.size(), OnFailure::kEnd, texts,
                                                       std::move(done), nullptr));
  for (size_t i = 0; i < items.size(); ++i) {
    GenerationEvents events = events_of(group, i);
    events.on_prepared = [group, i](const models::Cost& cost) { return group->Expect(i, cost); };
    events.on_grown = [group, i](size_t bytes) { group->Grow(i, bytes); };
    group->pending_->Generate(group->model_, std::move(items[i]), group->info_, std::move(events),
                              group->ReplyOf(i));
  }
  return group->pending_;
}

namespace {

CallInfo WithList(CallInfo info, size_t items) {
  info.refused_together *= items;
  return info;
}

}  // namespace

ItemGroup::ItemGroup(ApiContext& context, const CallInfo& info, ModelHandle model, size_t items,
                     OnFailure on_failure, bool texts, Done done,
                     std::shared_ptr<PendingCall> pending)
    : context_(context),
      info_(WithList(info, on_failure == OnFailure::kEnd ? items : 1)),
      model_(std::move(model)),
      on_failure_(on_failure),
      texts_(texts),
      done_(std::move(done)),
      pending_(pending != nullptr ? std::move(pending)
                                  : std::make_shared<PendingCall>(context.engine)),
      waiting_(items) {
  expected_.resize(items);
  grown_.resize(items);
  end_.completed.resize(items);
  end_.held = AnswerBytes(context.options.bytes, info.client);
  if (on_failure == OnFailure::kKeep) end_.errors.resize(items);
}

Reply<Completed> ItemGroup::ReplyOf(size_t index) {
  return [group = shared_from_this(), index](absl::StatusOr<Completed> completed) {
    group->ItemDone(index, std::move(completed));
  };
}

absl::Status ItemGroup::Expect(size_t index, const models::Cost& cost) {
  if (cost.answer_bytes <= 0) return absl::OkStatus();
  AnswerBytes bytes(context_.options.bytes, info_.client);
  const absl::Status fits = bytes.Add(static_cast<size_t>(cost.answer_bytes));
  absl::MutexLock lock(&mutex_);
  expected_[index] = std::move(bytes);
  return fits;
}

void ItemGroup::Grow(size_t index, size_t bytes) {
  absl::Status fits;
  {
    absl::MutexLock lock(&mutex_);
    if (over_) return;
    AnswerBytes& grown = grown_[index];
    if (grown.bytes() == 0) grown = AnswerBytes(context_.options.bytes, info_.client);
    if (bytes > grown.bytes()) fits = grown.Add(bytes - grown.bytes());
  }
  if (!fits.ok()) Fail(index, fits);
}

AnswerBytes ItemGroup::TakeExpected(size_t index) {
  absl::MutexLock lock(&mutex_);
  return std::exchange(expected_[index], AnswerBytes());
}

void ItemGroup::ItemDone(size_t index, absl::StatusOr<Completed> completed) {
  bool last = false;
  bool first_failure = false;
  {
    absl::MutexLock lock(&mutex_);
    expected_[index] = AnswerBytes();
    grown_[index] = AnswerBytes();
    if (completed.ok()) {
      context_.statistics.ItemDone(model_->name, model_->version, *completed);
      if (!texts_) {
        completed->answer.sequences.clear();
        completed->answer.prompt.reset();
      }
      // Nobody takes the answers of a group that is over.
      if (over_) *completed = Completed();
      // Many small ones are bounded by the limit of items, and by that of the answer.
      constexpr size_t kSmall = 64 << 10;
      const size_t bytes = MemoryOf(completed->answer);
      const absl::Status fits = bytes > kSmall ? end_.held.Add(bytes) : absl::OkStatus();
      if (!fits.ok()) completed = fits;
    }
    if (completed.ok()) {
      end_.completed[index] = *std::move(completed);
    } else if (on_failure_ == OnFailure::kKeep) {
      end_.errors[index] = completed.status();
    } else {
      first_failure = !std::exchange(over_, true);
    }
    last = --waiting_ == 0 && !over_;
    over_ = over_ || last;
  }
  if (first_failure) {
    Tell(index, completed.status());
  } else if (last) {
    done_(std::move(end_));
  }
}

void ItemGroup::Fail(size_t index, const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(over_, true)) return;
  }
  Tell(index, status);
}

bool ItemGroup::over() const {
  absl::MutexLock lock(&mutex_);
  return over_;
}

void ItemGroup::Tell(size_t index, const absl::Status& status) {
  // Nobody waits for the others any more. Their answers still come by ItemDone.
  pending_->Cancel();
  context_.statistics.RequestFailed(model_->name, model_->version,
                                    absl::ToDoubleSeconds(SteadyNow() - info_.arrival));
  GroupEnd end;
  end.status = status;
  end.failed = index;
  {
    absl::MutexLock lock(&mutex_);
    end.completed.resize(end_.completed.size());
    // The answers that were there are gone with this call.
    std::vector<Completed>(end_.completed.size()).swap(end_.completed);
    end_.held = {};
  }
  done_(std::move(end));
}

}  // namespace longview::server
