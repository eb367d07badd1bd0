#include "models/text/compose_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"
#include "models/text/sentence_piece.h"
#include "models/text/tokenizer_class.h"

namespace longview::models {

namespace {

using nlohmann::json;

absl::string_view View(std::string_view s) { return {s.data(), s.size()}; }

// Lines without their ends; a missing newline at the end of the file makes no difference.
std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool OneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::StatusOr<json> ParseMerges(std::string_view text) {
  json merges = json::array();
  size_t number = 0;
  for (std::string_view line : Lines(text)) {
    ++number;
    if (line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    const std::string_view right = space == line.npos ? "" : line.substr(space + 1);
    if (space == 0 || right.empty() || right.find(' ') != right.npos) {
      return absl::InvalidArgumentError(absl::StrCat("merges.txt: line ", number,
                                                     ": expected two tokens and one space, found ",
                                                     ShortJson(std::string(line))));
    }
    merges.push_back({std::string(line.substr(0, space)), std::string(right)});
  }
  return merges;
}

absl::StatusOr<json> IdOf(const json& vocab, const std::string& token, const char* file) {
  const auto id = vocab.find(token);
  if (id == vocab.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": lacks \"", token, "\", which the template needs"));
  }
  return *id;
}

json ByteLevel() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", true}};
}

json TemplatePiece(const std::string& kind, const std::string& id, int type_id) {
  return {{kind, {{"id", id}, {"type_id", type_id}}}};
}

using nlohmann::json;

json Special(const std::string& token, int64_t id) {
  return {{"id", token}, {"ids", json::array({id})}, {"tokens", json::array({token})}};
}

// "$A" and tokens, all of type 0.
json Template(std::initializer_list<const char*> parts) {
  json list = json::array();
  for (const std::string part : parts) {
    const bool text = part == "A" || part == "B";
    list.push_back({{text ? "Sequence" : "SpecialToken", {{"id", part}, {"type_id", 0}}}});
  }
  return list;
}

json Normalizer(const std::string& charsmap) {
  json steps = json::array();
  if (!charsmap.empty()) {
    steps.push_back(
        {{"type", "Precompiled"}, {"precompiled_charsmap", absl::Base64Escape(charsmap)}});
  }
  steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}});
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status NotKnown(std::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      ToAbsl(name), ": texts need a tokenizer.json: ", what,
      "; AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) of transformers writes one"));
}

}  // namespace

json BertTemplate(const TemplateTokens& tokens, const json& cls_id, const json& sep_id) {
  const json start = TemplatePiece("SpecialToken", tokens.cls, 0);
  const json first = TemplatePiece("Sequence", "A", 0);
  const json middle = TemplatePiece("SpecialToken", tokens.sep, 0);
  const json second = TemplatePiece("Sequence", "B", 1);
  const json end = TemplatePiece("SpecialToken", tokens.sep, 1);
  const auto special = [](const std::string& token, const json& id) {
    return json{{"id", token}, {"ids", json::array({id})}, {"tokens", json::array({token})}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", json::array({start, first, middle})},
          {"pair", json::array({start, first, middle, second, end})},
          {"special_tokens",
           {{tokens.cls, special(tokens.cls, cls_id)}, {tokens.sep, special(tokens.sep, sep_id)}}}};
}

json RobertaTemplate(const TemplateTokens& tokens, const json& cls_id, const json& sep_id) {
  return {{"type", "RobertaProcessing"},
          {"cls", json::array({tokens.cls, cls_id})},
          {"sep", json::array({tokens.sep, sep_id})},
          {"trim_offsets", true},
          {"add_prefix_space", false}};
}

absl::StatusOr<json> ComposeBytePairTokenizer(json vocab, std::string_view merges,
                                              std::string_view tokenizer_class,
                                              const TemplateTokens& tokens) {
  ASSIGN_OR_RETURN(json pairs, ParseMerges(merges));
  json document = {{"version", "1.0"},
                   {"added_tokens", json::array()},
                   {"pre_tokenizer", ByteLevel()},
                   {"decoder", ByteLevel()}};
  const std::string_view name = WithoutFast(tokenizer_class);
  if (name == "GPT2Tokenizer") {
    document["post_processor"] = ByteLevel();
    document["post_processor"]["trim_offsets"] = false;
  } else if (OneOf(name, {"", "RobertaTokenizer", "LongformerTokenizer", "LEDTokenizer",
                          "BartTokenizer"})) {
    absl::StatusOr<json> cls = IdOf(vocab, tokens.cls, "vocab.json");
    absl::StatusOr<json> sep = IdOf(vocab, tokens.sep, "vocab.json");
    if (!cls.ok()) return cls.status();
    if (!sep.ok()) return sep.status();
    document["post_processor"] = RobertaTemplate(tokens, *cls, *sep);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer_config.json: tokenizer_class \"", View(tokenizer_class),
        "\" is not known for vocab.json + merges.txt; a tokenizer.json says what it does"));
  }
  document["model"] = {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", ""},
                       {"end_of_word_suffix", ""},
                       {"fuse_unk", false},
                       {"vocab", std::move(vocab)},
                       {"merges", std::move(pairs)}};
  return document;
}

absl::StatusOr<json> ComposeWordPieceTokenizer(std::string_view vocab, const json& config,
                                               std::string_view tokenizer_class,
                                               const TemplateTokens& tokens,
                                               std::string_view unk_token) {
  if (!OneOf(WithoutFast(tokenizer_class),
             {"", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"})) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer_config.json: tokenizer_class \"", View(tokenizer_class),
                     "\" is not known for vocab.txt; a tokenizer.json says what it does"));
  }
  json ids = json::object();
  uint64_t next = 0;
  for (std::string_view line : Lines(vocab)) {
    line.remove_suffix(line.size() - std::min(line.size(), line.find_last_not_of(" \t\r\v\f") + 1));
    if (!line.empty()) ids[std::string(line)] = next;
    ++next;  // A blank line takes an id as well.
  }
  absl::StatusOr<json> cls = IdOf(ids, tokens.cls, "vocab.txt");
  absl::StatusOr<json> sep = IdOf(ids, tokens.sep, "vocab.txt");
  if (!cls.ok()) return cls.status();
  if (!sep.ok()) return sep.status();

  JsonReader reader(config, "tokenizer_config.json");
  const bool lower = reader.BoolOr("do_lower_case", true);
  const bool chinese = reader.BoolOr("tokenize_chinese_chars", true);
  // HuggingFace strips accents by default where it lowers case.
  const bool strip = reader.BoolOr("strip_accents", lower);
  if (!reader.status().ok()) return reader.status();
  return json{{"version", "1.0"},
              {"added_tokens", json::array()},
              {"normalizer",
               {{"type", "BertNormalizer"},
                {"clean_text", true},
                {"handle_chinese_chars", chinese},
                {"strip_accents", strip},
                {"lowercase", lower}}},
              {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
              {"post_processor", BertTemplate(tokens, *cls, *sep)},
              {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}},
              {"model",
               {{"type", "WordPiece"},
                {"unk_token", std::string(unk_token)},
                {"continuing_subword_prefix", "##"},
                {"max_input_chars_per_word", 100},
                {"vocab", std::move(ids)}}}};
}

absl::StatusOr<json> ComposeUnigramTokenizer(const std::string& bytes, std::string_view name,
                                             const TokenizerClass& tokenizer_class) {
  if (tokenizer_class.kind != TokenizerKind::kXlmRoberta) {
    return NotKnown(name, absl::StrCat("tokenizer_class \"", tokenizer_class.name,
                                       "\" is not XLMRobertaTokenizer"));
  }
  absl::StatusOr<SentencePieceModel> model = ParseSentencePiece(bytes);
  if (!model.ok()) return NotKnown(name, model.status().message());
  if (model->kind != SentencePieceModel::kUnigram || model->byte_fallback) {
    return NotKnown(name, "the vocabulary is not a Unigram one without bytes");
  }
  constexpr size_t kOwn = 3;  // <unk>, <s>, </s>
  json vocab = json::array({{"<s>", 0.0}, {"<pad>", 0.0}, {"</s>", 0.0}, {"<unk>", 0.0}});
  json added = json::array();
  // fairseq's four tokens replace the model's own three, so piece i has id i + 1.
  for (size_t i = kOwn; i < model->pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model->pieces[i];
    const bool control = piece.type == SentencePieceModel::kControl;
    if (control || piece.type == SentencePieceModel::kUserDefined) {
      added.push_back({{"id", vocab.size()},
                       {"content", piece.text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", control}});
    }
    vocab.push_back({piece.text, static_cast<double>(piece.score)});
  }
  vocab.push_back({"<mask>", 0.0});
  const json metaspace = {{"type", "Metaspace"},
                          {"replacement", "\u2581"},
                          {"prepend_scheme", "always"},
                          {"split", true}};
  return json{
      {"version", "1.0"},
      {"added_tokens", std::move(added)},
      {"normalizer", Normalizer(model->charsmap)},
      {"pre_tokenizer", metaspace},
      {"decoder", metaspace},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", Template({"<s>", "A", "</s>"})},
        {"pair", Template({"<s>", "A", "</s>", "</s>", "B", "</s>"})},
        {"special_tokens", {{"<s>", Special("<s>", 0)}, {"</s>", Special("</s>", 2)}}}}},
      {"model", {{"type", "Unigram"}, {"unk_id", 3}, {"byte_fallback", false}, {"vocab", vocab}}}};
}

}  // namespace longview::models
