// The typed generation requests as the model sees them. What an option may be is the model's to
// say; here only what goes together.
#pragma once

#include "absl/status/statusor.h"
#include "longview/v1/models.pb.h"
#include "longview/v1/text.pb.h"
#include "models/model.h"

namespace longview::server {

// INVALID_ARGUMENT names the field. With `document` set the text may be empty; the document
// itself is the caller's to add. Thread-safe.
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::GenerateRequest& proto,
                                               const models::ModelInfo& info);

// A part of a document's text. Unset: the message holds none.
absl::StatusOr<std::optional<models::Request>> ToModelRequest(
    const longview::v1::OpenDocumentRequest& proto);

// Renames HuggingFace's option names in a generator's error to those of the typed API.
absl::Status InTypedNames(const absl::Status& status, size_t item, size_t items);

// The task a model generates by. REQUIRES: it generates.
models::Task GenerationTask(const models::ModelInfo& info);

}  // namespace longview::server
