// The routes for clients of Ollama that embed texts.
#pragma once

#include "server/http/context.h"

namespace longview::server {

void AddOllamaEmbed(HttpContext& context, Router& router);  // /api/embed, /api/embeddings

}  // namespace longview::server
