#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/folder_search.h"
#include "client/cli/search/embedder.h"
#include "client/cli/search/passages.h"
#include "client/cli/search/vector_store.h"
#include "client/cli/search/walk.h"
#include "client/cli/search/words.h"
#include "client/cli/terminal.h"

namespace longview::client {
namespace {

constexpr size_t kNamedFiles = 3;  // In a note.

void NoteLeftOut(const std::vector<std::string>& paths, const std::string& why, Console& console) {
  if (paths.empty()) return;
  console.err << "longview: left out, " << why << ": ";
  for (size_t i = 0; i < std::min(paths.size(), kNamedFiles); ++i) {
    console.err << (i == 0 ? "" : ", ") << paths[i];
  }
  if (paths.size() > kNamedFiles) console.err << " and " << paths.size() - kNamedFiles << " more";
  console.err << "\n";
}

// Whether any model embeds, or may once it has loaded. True where the server does not say.
bool SomeModelEmbeds(const Client& client) {
  v1::ListModelsResponse listed;
  if (!client.ListModels(&listed).ok()) return true;
  return std::any_of(listed.models().begin(), listed.models().end(), [](const v1::Model& model) {
    const auto& tasks = model.tasks();
    return model.state() == "LOADING" ||
           (model.state() == "READY" &&
            (model.task() == "embedding" ||
             std::find(tasks.begin(), tasks.end(), "embedding") != tasks.end()));
  });
}

// The owner of all that a search by vectors needs.
struct Vectors {
  Connection connection;
  std::unique_ptr<Embedder> embedder;
  std::unique_ptr<VectorStore> store;
};

// Fills the question's vector, or leaves it out where words will do without.
ExitCode AskModel(const CommandLine& line, Console& console, Vectors* vectors, Question* question) {
  if (ExitCode code = Connect(line, console, &vectors->connection); code != kAllWell) {
    if (code == kServerNotReached) console.err << "longview: --by=words needs no server\n";
    return code;
  }
  const Client& client = *vectors->connection.client;
  if (line.by == "both" && line.model.empty() && !SomeModelEmbeds(client)) {
    console.err << "longview: no loaded model embeds: searching by words alone\n";
    return kAllWell;
  }
  v1::Model model;
  const ExitCode chosen = ChooseModel(client, line, "embedding", console, &model);
  if (chosen != kAllWell) {
    if (chosen == kUsage) console.err << "longview: --by=words needs no model\n";
    return chosen;
  }
  vectors->embedder =
      std::make_unique<Embedder>(client, EmbedderOptions{.model = model.name(),
                                                         .version = model.version(),
                                                         .max_tokens = model.max_tokens(),
                                                         .pooling = line.pooling,
                                                         .prompt_name = line.prompt_name});
  if (const grpc::Status status = vectors->embedder->Ask(line.query, &question->vector);
      !status.ok()) {
    Error(console) << "the question: " << CodeName(status.error_code()) << ": "
                   << status.error_message() << "\n";
    return kSomeInputFailed;
  }
  question->embedder = vectors->embedder.get();
  if (line.no_cache || line.cache_mib == 0 || line.cache_folder.empty()) return kAllWell;
  vectors->store = std::make_unique<VectorStore>(line.cache_folder, int64_t{line.cache_mib} << 20);
  question->store = vectors->store.get();
  return kAllWell;
}

}  // namespace

ExitCode RunSearch(const CommandLine& line, Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  Question question;
  Vectors vectors;
  if (line.by != "vectors") question.stems = QuestionStems(line.query);
  if (line.by != "words") {
    if (ExitCode code = AskModel(line, console, &vectors, &question); code != kAllWell) {
      return code;
    }
  }
  if (question.stems.empty() && question.embedder == nullptr) {
    Error(console) << "search: the question has no word to look for\n";
    return kUsage;
  }
  const FoundFiles files = FindFiles(line.inputs, line.max_file_bytes);
  FolderSearch search(line, console, question);
  search.Run(files.paths);
  search.PrintPlaces();
  if (search.kept()) vectors.store->Trim();
  if (!search.not_kept().ok()) {
    console.err << "longview: vectors are not kept for the next question: "
                << search.not_kept().message() << "\n";
  }
  NoteLeftOut(files.too_large, absl::StrCat("larger than --max_file_bytes=", line.max_file_bytes),
              console);
  NoteLeftOut(files.unreadable, "cannot be listed", console);
  if (console.err_is_terminal) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const bool alone = vectors.embedder != nullptr && !vectors.embedder->late();
    console.err << search.SummaryText(seconds.count())
                << (alone ? "; this model embeds each place by itself" : "") << "\n";
  }
  if (!files.paths.empty()) return search.failed() ? kSomeInputFailed : kAllWell;
  Error(console) << "no text files there\n";
  return kSomeInputFailed;
}

}  // namespace longview::client
