#include "server/engine/documents.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/status_macros.h"
#include "server/engine/refusals.h"
#include "server/errors.h"
#include "server/scheduler/thread_loop.h"
#include "server/scheduler/without_lock.h"

namespace longview::server {
namespace {

constexpr absl::Duration kLeaseCheck = absl::Seconds(1);
constexpr absl::Duration kRetry = absl::Seconds(1);

// 128 bits from the system's source of randomness.
std::string NewHandle() {
  std::random_device random;
  std::string handle;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&handle, "%08x", random());
  return handle;
}

absl::Status NoDocument(std::string_view handle, std::string_view why) {
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("document ", Quoted(handle), std::string(why)),
                   {"DOCUMENT_NOT_FOUND", std::nullopt, "document"});
}

absl::Status NotOpen(std::string_view handle) {
  return NoDocument(handle, ": no such document is open; its lease may be over");
}

// A piece's usage may count what the document held before, as cached.
void AddUsage(models::ItemUsage& sum, const models::ItemUsage& usage) {
  sum.input_tokens += usage.input_tokens - usage.cached_tokens;
  sum.truncated_tokens += usage.truncated_tokens;
}

}  // namespace

Documents::Documents(Engine& engine, const ModelStore& store, const Clock& clock,
                     const DocumentsOptions& options)
    : engine_(engine),
      store_(store),
      clock_(clock),
      options_(options),
      leases_(StartThread([this] { LeaseLoop(); })) {}

Documents::~Documents() {
  Entries left;
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    left.swap(entries_);
    ended_.SignalAll();
  }
  leases_.join();
  for (auto& [handle, entry] : left) End(std::move(entry), ShuttingDownError());
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return pending_ == 0; };
  mutex_.Await(absl::Condition(&none));
}

void Documents::PendingDone() {
  absl::MutexLock lock(&mutex_);
  --pending_;
}

size_t Documents::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

size_t Documents::CountOf(std::string_view client) const {
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [client](const auto& item) { return item.second->client == client; }));
}

void Documents::Renew(Entry& entry) const { entry.expires = clock_.Now() + entry.open.lease; }

absl::StatusOr<Documents::Entry*> Documents::Find(std::string_view handle,
                                                  std::string_view client) {
  const auto it = entries_.find(handle);
  if (it == entries_.end() || it->second->client != client) return NotOpen(handle);
  return it->second.get();
}

std::unique_ptr<Documents::Entry> Documents::Take(const std::string& handle) {
  const auto it = entries_.find(handle);
  if (it == entries_.end()) return nullptr;
  std::unique_ptr<Entry> entry = std::move(it->second);
  entries_.erase(it);
  return entry;
}

void Documents::End(std::unique_ptr<Entry> entry, const absl::Status& why) {
  if (entry->reading != 0) engine_.Cancel(entry->reading);
  for (Piece& piece : entry->pieces) piece.done(why);
}

void Documents::Open(ModelHandle model, std::string_view client, absl::Duration lease,
                     Reply<OpenDocument> done) {
  OpenDocument open;
  open.lease = lease == absl::ZeroDuration() ? options_.default_lease : lease;
  if (open.lease < absl::ZeroDuration() || open.lease > options_.max_lease) {
    done(MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("lease_seconds: ", absl::ToDoubleSeconds(lease), " is not in [0, ",
                                absl::ToDoubleSeconds(options_.max_lease), "]"),
                   {"", std::nullopt, "lease_seconds"}));
    return;
  }
  open.handle = NewHandle();
  open.model = model;
  {
    absl::MutexLock lock(&mutex_);
    ++pending_;
  }
  engine_.NewDocument(
      std::move(model),
      [this, open = std::move(open), client = std::string(client),
       done = std::move(done)](absl::StatusOr<std::shared_ptr<models::Document>> made) mutable {
        done(Enter(std::move(open), std::move(client), std::move(made)));
        PendingDone();
      });
}

absl::StatusOr<OpenDocument> Documents::Enter(
    OpenDocument open, std::string client, absl::StatusOr<std::shared_ptr<models::Document>> made) {
  if (!made.ok()) return made.status();
  auto entry = std::make_unique<Entry>();
  entry->open = open;
  entry->client = std::move(client);
  entry->document = *std::move(made);
  Renew(*entry);
  absl::MutexLock lock(&mutex_);
  if (ending_) return ShuttingDownError();
  if (CountOf(entry->client) >= options_.max_per_client) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     absl::StrCat("this client has ", options_.max_per_client,
                                  " documents open, which is the limit"),
                     {"TOO_MANY_DOCUMENTS", kRetry, ""});
  }
  entries_.emplace(open.handle, std::move(entry));
  return open;
}

void Documents::Append(std::string_view handle, models::Request request, const CallInfo& info,
                       Reply<OpenDocument> done) {
  const std::string name(handle);
  {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<Entry*> entry = Find(handle, info.client);
    if (entry.ok()) {
      request.task = models::Task::kTextGeneration;
      request.document = (*entry)->document;
      request.extend_document = true;
      (*entry)->pieces.push_back({std::move(request), info, std::move(done)});
      Renew(**entry);
      if (std::exchange((*entry)->busy, true)) return;
    }
  }
  if (done != nullptr) return done(NotOpen(handle));
  ReadNext(name);
}

void Documents::ReadNext(const std::string& handle) {
  ModelHandle model;
  models::Request request;
  CallInfo info;
  uint64_t number;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(handle);
    if (it == entries_.end()) return;
    Entry& entry = *it->second;
    number = ++entry.reads;
    model = entry.open.model;
    request = std::move(entry.pieces.front().request);
    info = entry.pieces.front().info;
    ++pending_;
  }
  const CallId id = engine_.Generate(std::move(model), std::move(request), info, {},
                                     [this, handle](absl::StatusOr<Completed> read) {
                                       PieceRead(handle, std::move(read));
                                       PendingDone();
                                     });
  bool closed = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(handle);
    closed = it == entries_.end();
    // The piece may have been read already, and the next one be under way.
    if (!closed && it->second->reads == number) it->second->reading = id;
  }
  if (closed && id != 0) engine_.Cancel(id);
}

void Documents::PieceRead(const std::string& handle, absl::StatusOr<Completed> read) {
  std::unique_ptr<Entry> ended;
  Reply<OpenDocument> done;
  absl::StatusOr<OpenDocument> answer = ShuttingDownError();
  bool more = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(handle);
    if (it == entries_.end()) return;  // Closed: its pieces have been answered.
    Entry& entry = *it->second;
    done = std::move(entry.pieces.front().done);
    entry.pieces.pop_front();
    entry.reading = 0;
    more = entry.busy = !entry.pieces.empty();
    if (read.ok()) {
      AddUsage(entry.open.usage, read->answer.usage);
      entry.open.queue_seconds += read->queue_seconds;
      entry.open.compute_seconds += read->compute_seconds;
      entry.open.state_bytes = read->state_bytes;
      Renew(entry);
      answer = entry.open;
    } else {
      answer = read.status();
      ended = Take(handle);
    }
  }
  done(std::move(answer));
  if (ended != nullptr) {
    End(std::move(ended), NoDocument(handle, ": an earlier piece of it could not be read"));
  } else if (more) {
    ReadNext(handle);
  }
}

absl::StatusOr<DocumentUse> Documents::Use(std::string_view handle, std::string_view client) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(auto* entry, Find(handle, client));
  if (entry->busy) return NoDocument(handle, ": it is still being read");
  Renew(*entry);
  return DocumentUse{entry->open.model, entry->document};
}

absl::StatusOr<OpenDocument> Documents::Close(std::string_view handle, std::string_view client) {
  std::unique_ptr<Entry> entry;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(Find(handle, client).status());
    entry = Take(std::string(handle));
  }
  OpenDocument open = entry->open;
  End(std::move(entry), CancelledError());
  return open;
}

void Documents::CloseExpired() {
  const absl::Time now = clock_.Now();
  // The store's own lock is not taken under ours.
  std::vector<std::pair<std::string, ModelHandle>> models;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [handle, entry] : entries_) models.emplace_back(handle, entry->open.model);
  }
  std::vector<std::string> orphans;
  for (const auto& [handle, model] : models) {
    const absl::StatusOr<ModelHandle> served = store_.Find(model->name, "");
    if (!served.ok() || *served != model) orphans.push_back(handle);
  }
  models.clear();

  std::vector<std::unique_ptr<Entry>> ended;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [handle, entry] : entries_) {
      if (entry->expires <= now && !entry->busy) orphans.push_back(handle);
    }
    for (const std::string& handle : orphans) {
      if (std::unique_ptr<Entry> entry = Take(handle)) ended.push_back(std::move(entry));
    }
  }
  for (std::unique_ptr<Entry>& entry : ended) {
    const std::string handle = entry->open.handle;
    End(std::move(entry), NoDocument(handle, ": its model was unloaded"));
  }
}

void Documents::LeaseLoop() {
  absl::MutexLock lock(&mutex_);
  while (!ended_.AwaitFor(&mutex_, absl::Condition(&ending_), kLeaseCheck)) {
    if (!entries_.empty()) WithoutLock(&mutex_, [this] { CloseExpired(); });
  }
}

}  // namespace longview::server
