#include "models/text/tokenizer_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"
#include "models/text/compose_tokenizer.h"
#include "models/text/lra_tokenizer.h"
#include "models/text/tokenizer_class.h"
#include "models/text/tokenizer_json.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr size_t kMaxVocabularyFile = size_t{128} << 20;
constexpr std::array<std::string_view, 7> kRoles = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// Everything beside the main file; absent files are empty objects.
struct SideFiles {
  json config = json::object();
  json special = json::object();
  json added = json::object();
  json model = json::object();  // config.json.

  // The value of a key that both may hold. A config with added_tokens_decoder (newer writers)
  // speaks alone; before that, the map of special tokens has the last word.
  const json* Setting(const std::string& key) const {
    const bool config_first = config.contains("added_tokens_decoder");
    for (const json* file :
         {config_first ? &config : &special, config_first ? &special : &config}) {
      const auto value = file->find(key);
      if (value != file->end() && !value->is_null()) return &*value;
    }
    return nullptr;
  }
};

// A token as these files write it: a string, or an object with flags.
struct AddedToken {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = true;
};

enum class Kind { kComplete, kBytePair, kWordPiece, kSentencePiece };

std::string Join(const std::string& directory, const char* file) {
  return (std::filesystem::path(directory) / file).string();
}

absl::StatusOr<json> ReadOptional(const std::string& path) {
  absl::StatusOr<json> file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status())) return json::object();
  return file;
}

absl::StatusOr<SideFiles> ReadSideFiles(const std::string& directory) {
  SideFiles files;
  const std::pair<const char*, json*> wanted[] = {{"tokenizer_config.json", &files.config},
                                                  {"special_tokens_map.json", &files.special},
                                                  {"added_tokens.json", &files.added},
                                                  {"config.json", &files.model}};
  for (const auto& [name, into] : wanted) {
    ASSIGN_OR_RETURN(json file, ReadOptional(Join(directory, name)));
    *into = std::move(file);
  }
  return files;
}

absl::StatusOr<AddedToken> ParseToken(const json& value, const std::string& where,
                                      bool lstrip_of_strings) {
  AddedToken token;
  if (value.is_string()) {
    token.content = value.get<std::string>();
    token.lstrip = lstrip_of_strings;
    return token;
  }
  JsonReader reader(value, where);
  token.content = reader.String("content");
  token.single_word = reader.BoolOr("single_word", false);
  token.lstrip = reader.BoolOr("lstrip", false);
  token.rstrip = reader.BoolOr("rstrip", false);
  token.normalized = reader.BoolOr("normalized", false);
  token.special = reader.BoolOr("special", true);
  if (!reader.status().ok()) return reader.status();
  return token;
}

void AddToken(json& document, const AddedToken& token) {
  json& list = document["added_tokens"];
  if (!list.is_array()) list = json::array();
  for (const json& known : list) {
    if (known.is_object() && known.value("content", json()) == token.content) return;
  }
  // The id is a formality: the crate finds it by content, or takes the next free one.
  list.push_back({{"id", 0},
                  {"content", token.content},
                  {"single_word", token.single_word},
                  {"lstrip", token.lstrip},
                  {"rstrip", token.rstrip},
                  {"normalized", token.normalized},
                  {"special", token.special}});
}

// Tokens that carry an id: those of tokenizer.json first, then the older ways of writing them.
absl::Status CollectAddedTokens(const SideFiles& files, json& document,
                                std::vector<TokenClaim>& claims) {
  const json* vocab = &document["model"]["vocab"];
  const auto claim = [&](const std::string& token, int64_t id, const std::string& where) {
    if (!vocab->contains(token)) claims.push_back({token, id, where});
  };
  if (document.contains("added_tokens") && document["added_tokens"].is_array()) {
    for (const json& token : document["added_tokens"]) {
      JsonReader reader(token, "tokenizer.json: added_tokens");
      const std::string content = reader.String("content");
      const int64_t id = reader.Int("id");
      if (!reader.status().ok()) return reader.status();
      claim(content, id, reader.origin());
    }
  }
  std::map<int64_t, std::pair<AddedToken, std::string>> by_id;
  const std::string decoder_where = "tokenizer_config.json: added_tokens_decoder";
  if (const auto decoder = files.config.find("added_tokens_decoder");
      decoder != files.config.end() && decoder->is_object()) {
    for (const auto& [key, value] : decoder->items()) {
      int64_t id = 0;
      if (!absl::SimpleAtoi(key, &id) || id < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(decoder_where, ": expected an id, found \"", key, "\""));
      }
      ASSIGN_OR_RETURN(AddedToken token, ParseToken(value, decoder_where, false));
      by_id[id] = {std::move(token), decoder_where};
    }
  }
  JsonReader added(files.added, "added_tokens.json");
  for (const auto& [content, value] : files.added.items()) {
    const int64_t id = added.Int(content);
    AddedToken token{.content = content};
    token.special = false;
    // emplace, not []: tokenizer_config.json wins, as added_tokens.json is the older form.
    by_id.emplace(id, std::pair(token, added.origin()));
  }
  if (!added.status().ok()) return added.status();
  for (const auto& [id, entry] : by_id) {
    claim(entry.first.content, id, entry.second);
    AddToken(document, entry.first);
  }
  return absl::OkStatus();
}

// Byte-level BPE models, and XLM-RoBERTa's vocabularies, use RoBERTa's special tokens, whose
// `<mask>` takes the space on its left.
bool IsRoberta(Kind kind, const json& document) {
  return kind == Kind::kSentencePiece || document["model"].value("type", "") == "BPE";
}

// Tokens named by role, and further special tokens without one.
absl::Status CollectRoles(Kind kind, const SideFiles& files, TokenizerSource& source,
                          json& document) {
  for (std::string_view role : kRoles) {
    const std::string key(role);
    const json* value = files.Setting(key);
    if (value == nullptr) continue;
    const bool lstrip = IsRoberta(kind, document) && role == "mask_token";
    ASSIGN_OR_RETURN(AddedToken token, ParseToken(*value, key, lstrip));
    source.roles[key] = token.content;
    AddToken(document, token);
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const json* values = files.Setting(key);
    if (values == nullptr) continue;
    for (const auto& [name, value] : values->items()) {
      ASSIGN_OR_RETURN(AddedToken token, ParseToken(value, key, false));
      AddToken(document, token);
    }
  }
  return absl::OkStatus();
}

// Names that RoBERTa's, XLM-RoBERTa's and BERT's tokenizer classes have without any file saying so;
// only those that the vocabulary holds count. A tokenizer.json lists its special tokens itself.
// The generic class has no unknown token but the one that its files name.
void AddDefaultRoles(Kind kind, TokenizerKind tokenizer_class, TokenizerSource& source,
                     json& document) {
  static constexpr std::array<const char*, 7> kRoberta = {"<s>",   "</s>", "<unk>", "</s>",
                                                          "<pad>", "<s>",  "<mask>"};
  static constexpr std::array<const char*, 7> kBert = {nullptr, nullptr, "[UNK]", "[SEP]",
                                                       "[PAD]", "[CLS]", "[MASK]"};
  const bool unigram = document["model"].value("type", "") == "Unigram";
  const auto& defaults = IsRoberta(kind, document) || unigram ? kRoberta : kBert;
  for (size_t i = 0; i < kRoles.size(); ++i) {
    const std::string role(kRoles[i]);
    if (defaults[i] == nullptr || source.roles.contains(role)) continue;
    if (tokenizer_class == TokenizerKind::kGeneric && role == "unk_token") continue;
    const bool composed = kind == Kind::kSentencePiece;  // With all of them.
    if (!composed && !IdInDocument(document, defaults[i])) continue;
    source.roles[role] = defaults[i];
    if (kind == Kind::kComplete) continue;
    AddToken(document,
             {.content = defaults[i], .lstrip = IsRoberta(kind, document) && role == "mask_token"});
  }
}

// `saved_side` is that of a truncation which tokenizer.json has; its length does not count.
absl::Status ReadLimits(const json& config, const std::string& saved_side,
                        TokenizerSource& source) {
  JsonReader reader(config, "tokenizer_config.json");
  // HuggingFace writes a number around 1e30 for "no limit".
  const double length = reader.NumberOr("model_max_length", reader.NumberOr("max_len", 0));
  if (length > 0 && length < 1e9) source.model_max_length = static_cast<int64_t>(length);
  source.cuts_left = reader.ChoiceOr("truncation_side", saved_side, {"left", "right"}) == "left";
  return reader.status();
}

std::string RoleOr(const SideFiles& files, const char* role, const std::string& fallback) {
  const json* value = files.Setting(role);
  if (value == nullptr) return fallback;
  absl::StatusOr<AddedToken> token = ParseToken(*value, role, false);
  return token.ok() ? token->content : fallback;
}

std::string SavedTruncationSide(const json& document) {
  const auto truncation = document.find("truncation");
  const bool saved = truncation != document.end() && truncation->is_object();
  return saved && truncation->value("direction", json()) == "Left" ? "left" : "right";
}

absl::StatusOr<json> ComposeBytePair(const std::string& directory, const SideFiles& files,
                                     const std::string& tokenizer_class) {
  ASSIGN_OR_RETURN(json vocab, ReadJsonFile(Join(directory, "vocab.json"), kMaxVocabularyFile));
  absl::StatusOr<std::string> merges = ReadFile(Join(directory, "merges.txt"), kMaxVocabularyFile);
  if (!merges.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocab.json needs merges.txt beside it: ", merges.status().message()));
  }
  return ComposeBytePairTokenizer(
      std::move(vocab), *merges, tokenizer_class,
      {RoleOr(files, "cls_token", "<s>"), RoleOr(files, "sep_token", "</s>")});
}

absl::StatusOr<json> ComposeWordPiece(const std::string& directory, const SideFiles& files,
                                      const std::string& tokenizer_class) {
  ASSIGN_OR_RETURN(std::string vocab, ReadFile(Join(directory, "vocab.txt"), kMaxVocabularyFile));
  return ComposeWordPieceTokenizer(
      vocab, files.config, tokenizer_class,
      {RoleOr(files, "cls_token", "[CLS]"), RoleOr(files, "sep_token", "[SEP]")},
      RoleOr(files, "unk_token", "[UNK]"));
}

absl::StatusOr<json> ComposeSentencePiece(const std::string& directory, const char* name,
                                          const SideFiles& files) {
  ASSIGN_OR_RETURN(std::string vocab, ReadFile(Join(directory, name), kMaxVocabularyFile));
  return ComposeUnigramTokenizer(vocab, name, FindTokenizerClass(files.config, files.model));
}

std::optional<std::pair<Kind, const char*>> FindMainFile(const std::string& directory) {
  const std::pair<Kind, const char*> candidates[] = {
      {Kind::kComplete, "tokenizer.json"},      {Kind::kBytePair, "vocab.json"},
      {Kind::kWordPiece, "vocab.txt"},          {Kind::kSentencePiece, "sentencepiece.bpe.model"},
      {Kind::kSentencePiece, "spiece.model"},   {Kind::kSentencePiece, "spm.model"},
      {Kind::kSentencePiece, "tokenizer.model"}};
  for (const auto& candidate : candidates) {
    std::error_code error;
    if (std::filesystem::exists(Join(directory, candidate.second), error)) return candidate;
  }
  return std::nullopt;
}

absl::StatusOr<json> ReadDocument(const std::string& directory, Kind kind, const char* name,
                                  const SideFiles& files) {
  JsonReader config(files.config, "tokenizer_config.json");
  const std::string tokenizer_class = config.StringOr("tokenizer_class", "");
  if (!config.status().ok()) return config.status();
  if (tokenizer_class == "LRAWordTokenizer") {
    ASSIGN_OR_RETURN(json vocab, ReadJsonFile(Join(directory, "vocab.json"), kMaxVocabularyFile));
    return ComposeLraWordTokenizer(std::move(vocab), files.config);
  }
  switch (kind) {
    case Kind::kBytePair:
      return ComposeBytePair(directory, files, tokenizer_class);
    case Kind::kWordPiece:
      return ComposeWordPiece(directory, files, tokenizer_class);
    case Kind::kSentencePiece:
      return ComposeSentencePiece(directory, name, files);
    case Kind::kComplete:
      break;
  }
  return ReadJsonFile(Join(directory, "tokenizer.json"), kMaxVocabularyFile);
}

}  // namespace

absl::StatusOr<TokenizerSource> ReadTokenizerDirectory(const std::string& directory) {
  const auto main_file = FindMainFile(directory);
  if (!main_file) {
    return absl::NotFoundError(absl::StrCat(
        directory,
        ": no tokenizer: no tokenizer.json, vocab.json, vocab.txt or vocabulary of SentencePiece"));
  }
  const Kind kind = main_file->first;
  TokenizerSource source;
  source.origin = Join(directory, main_file->second);

  ASSIGN_OR_RETURN(SideFiles files, ReadSideFiles(directory));
  absl::StatusOr<json> document = ReadDocument(directory, kind, main_file->second, files);
  absl::Status status = document.status();
  const TokenizerClass tokenizer_class = FindTokenizerClass(files.config, files.model);
  const TemplateTokens defaults = DefaultTemplateTokens(tokenizer_class.kind);
  const std::string saved_side = status.ok() ? SavedTruncationSide(*document) : "";
  if (status.ok()) status = CheckTokenizerJson(*document, source.origin, source.claims);
  if (status.ok()) {
    AddClassTemplate(
        tokenizer_class.kind,
        {RoleOr(files, "cls_token", defaults.cls), RoleOr(files, "sep_token", defaults.sep)},
        *document);
  }
  if (status.ok()) status = CollectAddedTokens(files, *document, source.claims);
  if (status.ok()) status = CollectRoles(kind, files, source, *document);
  if (status.ok()) AddDefaultRoles(kind, tokenizer_class.kind, source, *document);
  if (status.ok()) status = ApplyOverrides(files.config, tokenizer_class.kind, *document);
  if (status.ok()) status = ReadLimits(files.config, saved_side, source);
  if (!status.ok()) return status;
  const json& model = (*document)["model"];
  const auto prefix = model.find("continuing_subword_prefix");
  source.gives_types = tokenizer_class.gives_types;
  source.marks_continuations = prefix != model.end() && prefix->is_string() && *prefix != "";
  source.json = document->dump();
  return source;
}

}  // namespace longview::models
