#include "server/http/v1/token_ids_warning.h"

#include "server/http/json/body_error.h"

namespace longview::server {
namespace {

constexpr char kWarning[] =
    "input holds token ids, which are taken as the model's own; a client with another tokenizer "
    "must "
    "send text (LangChain's OpenAIEmbeddings: check_embedding_ctx_length=False)";

}  // namespace

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

}  // namespace longview::server
