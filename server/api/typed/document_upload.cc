#include "server/api/typed/document_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/api/api.h"
#include "server/api/calls/call_totals.h"
#include "server/api/typed/generate_requests.h"
#include "server/errors.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {
namespace {

longview::v1::Document ToProto(const OpenDocument& open, double total_seconds) {
  longview::v1::Document out;
  out.set_handle(open.handle);
  out.set_model(open.model->name);
  out.set_version(open.model->version);
  out.set_state_bytes(open.state_bytes);
  out.set_lease_seconds(absl::ToDoubleSeconds(open.lease));
  *out.mutable_usage() = ToUsage(open.usage);
  out.mutable_timing()->set_queue_seconds(open.queue_seconds);
  out.mutable_timing()->set_compute_seconds(open.compute_seconds);
  out.mutable_timing()->set_total_seconds(total_seconds);
  return out;
}

absl::Status Cancelled() {
  return MakeError(absl::StatusCode::kCancelled, "the client cancelled the call",
                   {.reason = "CANCELLED"});
}

}  // namespace

void DocumentUpload::Append(longview::v1::OpenDocumentRequest part, Done done) {
  if (open_.model == nullptr) return Open(std::move(part), std::move(done));
  if (!part.model().empty() && part.model() != open_.model->name) {
    return done(Failed(BadField("model", "only the first message names it")));
  }
  if (part.lease_seconds() != 0) {
    return done(Failed(BadField("lease_seconds", "only the first message gives it")));
  }
  Read(std::move(part), std::move(done));
}

void DocumentUpload::Open(longview::v1::OpenDocumentRequest first, Done done) {
  absl::StatusOr<ModelHandle> model =
      FindModelForTask(context_, first.model(), first.version(), models::Task::kTextGeneration);
  if (!model.ok()) {
    labels_ = context_.recorder.Labels(first.model());
    return done(Failed(model.status()));
  }
  labels_ = {(*model)->name, (*model)->version};
  const absl::Duration lease = absl::Seconds(first.lease_seconds());
  if (lease < absl::ZeroDuration() || first.lease_seconds() != first.lease_seconds()) {
    return done(Failed(
        BadField("lease_seconds", absl::StrCat(first.lease_seconds(), " is no time from now"))));
  }
  context_.documents.Open(*std::move(model), info_.client, lease,
                          [self = shared_from_this(), first = std::move(first),
                           done = std::move(done)](absl::StatusOr<OpenDocument> open) mutable {
                            self->Opened(std::move(open), std::move(first), std::move(done));
                          });
}

void DocumentUpload::Opened(absl::StatusOr<OpenDocument> open,
                            longview::v1::OpenDocumentRequest first, Done done) {
  if (!open.ok()) return done(Failed(open.status()));
  bool cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    cancelled = cancelled_;
    if (!cancelled) handle_ = open->handle;
  }
  if (cancelled) {
    (void)context_.documents.Close(open->handle, info_.client);
    return done(Failed(Cancelled()));
  }
  open_ = *std::move(open);
  Read(std::move(first), std::move(done));
}

void DocumentUpload::Read(longview::v1::OpenDocumentRequest part, Done done) {
  absl::StatusOr<std::optional<models::Request>> request = ToModelRequest(part);
  if (!request.ok()) return done(Failed(request.status()));
  if (!request->has_value()) return done(absl::OkStatus());
  context_.documents.Append(open_.handle, **std::move(request), info_,
                            [self = shared_from_this(),
                             done = std::move(done)](absl::StatusOr<OpenDocument> open) mutable {
                              if (!open.ok()) return done(self->Failed(WithParam(open.status())));
                              self->open_ = *std::move(open);
                              done(absl::OkStatus());
                            });
}

absl::Status DocumentUpload::Failed(const absl::Status& status) {
  std::string handle;
  bool cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    handle.swap(handle_);
    cancelled = cancelled_;
  }
  // A part that failed has closed the document; other errors have not.
  if (!handle.empty()) (void)context_.documents.Close(handle, info_.client);
  return context_.recorder.Done(info_, labels_, cancelled ? Cancelled() : status, {.items = 1});
}

absl::StatusOr<longview::v1::Document> DocumentUpload::Finish() {
  if (open_.model == nullptr) {
    return Failed(BadField("model", "the stream has no message; the first names the model"));
  }
  bool cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    cancelled = cancelled_;
  }
  if (cancelled) return Failed(Cancelled());
  RETURN_IF_ERROR(context_.recorder.Done(info_, labels_, absl::OkStatus(),
                                         {.items = 1, .tokens = open_.usage.input_tokens}));
  return ToProto(open_, absl::ToDoubleSeconds(SteadyNow() - info_.arrival));
}

void DocumentUpload::Cancel() {
  std::string handle;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    handle.swap(handle_);
  }
  // The read under way ends, and its part with it.
  if (!handle.empty()) (void)context_.documents.Close(handle, info_.client);
}

std::shared_ptr<DocumentUpload> Api::OpenDocument(const CallInfo& info) {
  return std::make_shared<DocumentUpload>(context_, info);
}

absl::StatusOr<longview::v1::Document> Api::CloseDocument(
    const CallInfo& info, const longview::v1::CloseDocumentRequest& request) {
  ApiContext& context = context_;
  const absl::StatusOr<server::OpenDocument> open =
      context.documents.Close(request.handle(), info.client);
  ModelLabels labels;
  if (open.ok()) labels = {open->model->name, open->model->version};
  RETURN_IF_ERROR(context.recorder.Done(info, labels, open.status(), {}));
  return ToProto(*open, absl::ToDoubleSeconds(SteadyNow() - info.arrival));
}

}  // namespace longview::server
