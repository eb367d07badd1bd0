// The items of one call: submitted one by one or together, joined when the last is answered.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "models/model.h"
#include "server/api/calls/answer_bytes.h"
#include "server/api/calls/context.h"

namespace longview::server {

// The outcome of a group, by index: an item has an answer or an error.
struct GroupEnd {
  // The first failure, unless failures are kept; if it is one, `completed` counts for nothing.
  absl::Status status;
  size_t failed = 0;  // Index of the first failure.
  std::vector<Completed> completed;
  std::vector<absl::Status> errors;  // Failures by item, if they are kept; else empty.
  AnswerBytes held = {};             // For `completed` of generated items.
};

// Items, tokens and pixels of the answered ones, for metrics and the log.
CallRecorder::Counts CountsOf(const GroupEnd& end);

class ItemGroup : public std::enable_shared_from_this<ItemGroup> {
 public:
  // kTogether: the items are admitted as one, all or none.
  enum class Admitted { kEach, kTogether };
  // kEnd: the first failure ends the others; kKeep: each item has its own.
  enum class OnFailure { kEnd, kKeep };
  using Done = absl::AnyInvocable<void(GroupEnd)>;

  using EventsOf =
      absl::FunctionRef<GenerationEvents(const std::shared_ptr<ItemGroup>& group, size_t index)>;

  // Items that are computed in batches. `done` runs once, on the thread of the answer that decided,
  // and counts nothing but the items in the statistics of the model. A group lives until its last
  // item is answered. `pending`: the call they belong to; null: a new one.
  static std::shared_ptr<PendingCall> Start(ApiContext& context, const CallInfo& info,
                                            ModelHandle model, std::vector<models::Request> items,
                                            OnFailure on_failure, Done done,
                                            Admitted admitted = Admitted::kEach,
                                            std::shared_ptr<PendingCall> pending = nullptr);
  // Items that are generated, whose first failure ends the others. Of each, `events_of` says who
  // gets its events. Without `texts`, `completed` tells of usage and times alone.
  static std::shared_ptr<PendingCall> Generate(ApiContext& context, const CallInfo& info,
                                               ModelHandle model,
                                               std::vector<models::Request> items, bool texts,
                                               Done done, EventsOf events_of);

  // Ends the group as if item `index` had failed, unless one has, or all are answered.
  void Fail(size_t index, const absl::Status& status);
  // The bytes that were counted for the prompt of item `index` before it ran.
  AnswerBytes TakeExpected(size_t index);
  // Whether `done` has been taken.
  bool over() const;

 private:
  // Counts the bytes of an echoed prompt before the item runs.
  absl::Status Expect(size_t index, const models::Cost& cost);
  // Counts the tokens that an item has generated, `bytes` so far, until it is answered.
  void Grow(size_t index, size_t bytes);

  ItemGroup(ApiContext& context, const CallInfo& info, ModelHandle model, size_t items,
            OnFailure on_failure, bool texts, Done done, std::shared_ptr<PendingCall> pending);

  Reply<Completed> ReplyOf(size_t index);
  void ItemDone(size_t index, absl::StatusOr<Completed> completed);
  // Tells the client about the failure of `index`.
  void Tell(size_t index, const absl::Status& status);

  ApiContext& context_;
  const CallInfo info_;
  const ModelHandle model_;
  const OnFailure on_failure_;
  const bool texts_;  // Generated ones are wanted.
  Done done_;         // Taken once: by the first failure or the last answer.
  const std::shared_ptr<PendingCall> pending_;

  mutable absl::Mutex mutex_;
  std::vector<AnswerBytes> expected_ ABSL_GUARDED_BY(mutex_);  // Echoed prompts, by item.
  std::vector<AnswerBytes> grown_ ABSL_GUARDED_BY(mutex_);     // Generated tokens, by item.
  // Guarded by mutex_ until the last answer is in, then of the thread that brought it.
  GroupEnd end_;
  size_t waiting_ ABSL_GUARDED_BY(mutex_);  // Items without an answer.
  // An item has failed that ends the others, or all are answered.
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace longview::server
