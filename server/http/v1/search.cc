// The files of --search_folder, which the console's Search tab ranks.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/context.h"
#include "server/http/json/writer.h"
#include "server/http/uri.h"
#include "server/http/v1/search_folder.h"

namespace longview::server {
namespace {

absl::Status Off() {
  return MakeError(absl::StatusCode::kNotFound,
                   "no folder is served for searching: start the server with --search_folder=DIR",
                   {.reason = "NO_SEARCH_FOLDER"});
}

absl::StatusOr<HttpResponse> ListFiles(SearchFolder& folder) {
  const absl::StatusOr<SearchFolder::Listing> listing = folder.List();
  if (!listing.ok()) return listing.status();
  std::string body = R"({"folder":)";
  AppendJsonString(folder.Name(), &body);
  absl::StrAppend(&body, R"(,"more":)", listing->more ? "true" : "false", R"(,"files":[)");
  for (const WalkedFiles::File& file : listing->files) {
    if (body.back() == '}') body += ",";
    body += R"({"path":)";
    AppendJsonString(file.path, &body);
    absl::StrAppend(&body, R"(,"bytes":)", file.bytes, "}");
  }
  return JsonResponse(body + "]}");
}

absl::StatusOr<HttpResponse> ReadFile(SearchFolder& folder, const std::string& query) {
  const auto fields = ParseQuery(query);
  const std::string path(fields ? FindField(*fields, "path") : "");
  if (path.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "path: name a file of the folder, ?path=src/main.cc",
                     {.reason = "INVALID_FIELD", .param = "path"});
  }
  absl::StatusOr<std::string> text = folder.Read(path);
  if (!text.ok()) return text.status();
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  // Never a page, whatever a file holds.
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.body = *std::move(text);
  return response;
}

// A route that reads files, on a thread that may wait for them.
template <typename Work>
HttpHandler Reading(HttpContext& context, std::shared_ptr<SearchFolder> folder, Work work) {
  return [&context, folder = std::move(folder), work](const ExchangePtr& exchange,
                                                      const PathParameters&) {
    if (folder == nullptr) return Refuse(context, exchange, Off());
    WriteSized(context, exchange, SearchFolder::kMostFileBytes, [&context, exchange, folder, work] {
      absl::StatusOr<HttpResponse> response = work(*folder, exchange->request());
      if (!response.ok()) return Refuse(context, exchange, response.status());
      Answer(context, exchange, *std::move(response));
    });
  };
}

}  // namespace

void AddSearch(HttpContext& context, Router& router) {
  std::shared_ptr<SearchFolder> folder;
  if (!context.search_folder.empty()) {
    folder = std::make_shared<SearchFolder>(context.search_folder);
  }
  router.Add(Verb::kGet, "/v1/search/files",
             Reading(context, folder,
                     [](SearchFolder& its, const HttpRequest&) { return ListFiles(its); }));
  router.Add(Verb::kGet, "/v1/search/file",
             Reading(context, folder, [](SearchFolder& its, const HttpRequest& request) {
               return ReadFile(its, request.query);
             }));
}

}  // namespace longview::server
