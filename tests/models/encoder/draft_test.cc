// Texts that are cut have the tokens of the whole text, some left out.
#include "models/encoder/draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "models/encoder/rules.h"
#include "models/text/byte_codec.h"
#include "tests/models/text/golden_file.h"

namespace longview::models {
namespace {

class PlainRules final : public SequenceRules {
 public:
  const EncoderFacts& facts() const override { return facts_; }
  absl::Status Place(const std::string&, EncoderSequence&) const override {
    return absl::OkStatus();
  }
  EncoderFacts facts_;
};

std::string Words(std::mt19937& random, size_t bytes) {
  static constexpr const char* kWords[] = {"the ", "return", " of", "don't ",
                                           "\n",   "日本語", "12 "};
  std::string text;
  while (text.size() < bytes) text += kWords[random() % std::size(kWords)];
  return text;
}

// Several prompts end where a tokenizer that sees the text too goes on with the word.
TEST(DraftTest, TextsBehindAPromptAreCutOnTheLeft) {
  for (const std::string name :
       {"roberta_bpe", "bert_wordpiece_cased", "bert_wordpiece_uncased", "xlmr_sentencepiece"}) {
    const absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Load(TokenizerGolden(name) / "model");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    PlainRules rules;
    EncoderFrontEnd front;
    front.rules = &rules;
    front.tokenizer = &*tokenizer;
    front.max_tokens = 40;
    std::mt19937 random(5);
    for (const std::string prompt :
         {"query: ", "the", "x", "re", "日", "a longer prompt of words"}) {
      for (size_t bytes = 0; bytes < 700; bytes += 1 + random() % 23) {
        Request request;
        request.task = Task::kEmbedding;
        request.text = Words(random, bytes);
        request.truncate = true;
        request.truncation_direction = "left";
        const auto drafts = DraftSequences(front, request, prompt);
        ASSERT_TRUE(drafts.ok()) << drafts.status();
        Encoding whole = tokenizer->Encode(prompt + *request.text, {})->encoding;
        const auto first = static_cast<ptrdiff_t>(*PromptTokens(front, prompt));
        const auto excess = static_cast<ptrdiff_t>(whole.ids.size()) - front.max_tokens;
        const auto cut = [&](auto& values) {
          if (excess > 0) values.erase(values.begin() + first, values.begin() + first + excess);
        };
        cut(whole.ids);
        cut(whole.offsets);
        cut(whole.words);
        cut(whole.sequences);
        cut(whole.special_mask);
        const SequenceDraft& draft = drafts->front();
        EXPECT_EQ(draft.tokens.ids, whole.ids) << name << prompt << *request.text;
        EXPECT_EQ(draft.encoding->offsets, whole.offsets);
        EXPECT_EQ(draft.encoding->words, whole.words);
        EXPECT_EQ(draft.encoding->sequences, whole.sequences);
        EXPECT_EQ(draft.encoding->special_mask, whole.special_mask);
        EXPECT_EQ(draft.truncated, std::max<ptrdiff_t>(excess, 0));
      }
    }
  }
}

TEST(DraftTest, APromptThatLeavesNoRoomIsRefused) {
  const absl::StatusOr<Tokenizer> tokenizer =
      Tokenizer::Load(TokenizerGolden("roberta_bpe") / "model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  PlainRules rules;
  EncoderFrontEnd front;
  front.rules = &rules;
  front.tokenizer = &*tokenizer;
  front.max_tokens = *PromptTokens(front, "! ! !") + 1;  // And </s>.
  Request request;
  request.task = Task::kEmbedding;
  request.text = "! ! ! !";
  request.truncate = true;
  request.truncation_direction = "left";
  EXPECT_TRUE(DraftSequences(front, request, "! !").ok());
  EXPECT_TRUE(DraftSequences(front, request, "! ! !").ok());
  const absl::Status status = DraftSequences(front, request, "! ! ! !").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(status.message(), "prompt: its ")) << status;
}

// Text of bytes is cut as their ids are, where some bytes are the padding that positions leave out.
TEST(DraftTest, PaddingWrittenInATextOfBytes) {
  const auto codec = ByteCodec::Create(nullptr, "", 256, "config.json");
  ASSERT_TRUE(codec.ok()) << codec.status();
  PlainRules rules;
  rules.facts_.pad = 'p';
  rules.facts_.pad_masks = rules.facts_.masked_take_no_position = true;
  EncoderFrontEnd front;
  front.rules = &rules;
  front.codec = codec->get();
  front.max_tokens = 9;
  std::mt19937 random(6);
  for (int round = 0; round < 3000; ++round) {
    rules.facts_.sep.reset();
    if (round % 2 != 0) rules.facts_.sep = 's';
    Request text;
    text.task = Task::kEmbedding;
    text.text.emplace();
    for (unsigned left = random() % 30; left > 0; --left)
      text.text->push_back("abps"[random() % 4]);
    text.truncate = round % 3 != 0;
    Request ids = text;
    ids.text.reset();
    ids.tokens.emplace();
    ids.tokens->ids.assign(text.text->begin(), text.text->end());
    const auto from_text = DraftSequences(front, text);
    const auto from_ids = DraftSequences(front, ids);
    ASSERT_EQ(from_text.ok(), from_ids.ok()) << *text.text;
    if (!from_text.ok()) continue;
    EXPECT_EQ(from_text->front().tokens.ids, from_ids->front().tokens.ids) << *text.text;
    EXPECT_EQ(from_text->front().truncated, from_ids->front().truncated) << *text.text;
  }
  // The ids of a long text are not all kept on the way.
  for (const std::string part : {"a", "p", "ap", "appp"}) {
    std::string longer;
    while (longer.size() < 1 << 20) longer += part;
    const auto first = EncodeFirst(**codec, longer, {.keep = 9, .cut = true, .uncounted = 'p'});
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(first->tokens, std::count(longer.begin(), longer.end(), 'a'));
    EXPECT_LE(first->ids.capacity(), 32u);
  }
}

TEST(DraftTest, MoreThanALimitOfPaddingIsRefused) {
  const auto codec = ByteCodec::Create(nullptr, "", 256, "config.json");
  ASSERT_TRUE(codec.ok()) << codec.status();
  PlainRules rules;
  rules.facts_.pad = 'p';
  rules.facts_.pad_masks = rules.facts_.masked_take_no_position = true;
  EncoderFrontEnd front;
  front.rules = &rules;
  front.codec = codec->get();
  front.max_tokens = 9;
  for (const bool truncate : {false, true}) {
    for (const auto& [pads, ok] : {std::pair(9, true), {10, false}, {1 << 20, false}}) {
      Request text;
      text.task = Task::kEmbedding;
      text.text = "a" + std::string(static_cast<size_t>(pads), 'p') + "b";
      text.truncate = truncate;
      Request ids = text;
      ids.text.reset();
      ids.tokens.emplace();
      ids.tokens->ids.assign(text.text->begin(), text.text->end());
      for (const Request& request : {text, ids}) {
        const auto drafts = DraftSequences(front, request);
        EXPECT_EQ(drafts.ok(), ok) << pads;
        if (!ok) {
          EXPECT_TRUE(
              absl::StrContains(drafts.status().message(), "more than 9 tokens are padding"))
              << drafts.status();
        }
      }
    }
  }
}

}  // namespace
}  // namespace longview::models
