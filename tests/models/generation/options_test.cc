// Options by name, their checks, and who wins where several say something.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/generation/options/settings.h"

namespace longview::models {
namespace {

const std::vector<int32_t> kEos = {9};

SettingsContext Context() { return {.vocab = 50, .prompt = 7, .room = 93, .eos = &kEos}; }

GenerationOptions Options(const std::vector<std::pair<std::string, std::string>>& named,
                          GenerationDefaults defaults = GenerationDefaults::kHuggingFace) {
  GenerationOptions options;
  options.defaults = defaults;
  for (const auto& [name, value] : named) {
    const absl::Status status = SetOption(options, name, value);
    EXPECT_TRUE(status.ok()) << status;
  }
  return options;
}

GenerationSettings Resolve(const GenerationOptions& request, const GenerationOptions& model = {}) {
  const absl::StatusOr<GenerationSettings> settings = ResolveSettings(request, model, Context());
  EXPECT_TRUE(settings.ok()) << settings.status();
  return settings.ok() ? *settings : GenerationSettings();
}

TEST(SetOption, RefusesByNameAndValue) {
  const struct {
    const char *name, *json, *message;
  } kCases[] = {
      {"max_tokens", "1.5", "max_tokens: expected an integer"},
      {"max_tokens", "\"ten\"", "found \"ten\""},
      {"max_new_tokens", "3000000000", "found 3000000000"},
      {"temperature", "\"NaN\"", "temperature: expected a number, found \"NaN\""},
      {"temperature", "true", "expected a number"},
      {"temperature", "[1]", "expected a number"},
      {"seed", "-1", "seed: expected an integer in [0, 4294967295]"},
      {"seed", "4294967296", "seed"},
      {"do_sample", "1", "true or false"},
      {"echo", "\"yes\"", "true or false"},
      {"stop", "[1]", "stop: expected a string or a list of strings"},
      {"stop", "{}", "stop: expected"},
      {"early_stopping", "\"ever\"", "\"never\""},
      {"temprature", "1", "temprature: no such generation option"},
      {"temperature", "{", "not valid JSON"},
  };
  for (const auto& test : kCases) {
    GenerationOptions options;
    const absl::Status status = SetOption(options, test.name, test.json);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.name;
    EXPECT_NE(status.message().find(test.message), std::string::npos)
        << test.name << " " << test.json << ": " << status.message();
  }
}

TEST(SetOption, OneOptionUnderTwoNamesIsAnError) {
  const char* kPairs[][2] = {{"max_tokens", "max_new_tokens"},
                             {"min_tokens", "min_new_tokens"},
                             {"n", "num_return_sequences"}};
  for (const auto& [first, second] : kPairs) {
    GenerationOptions options;
    EXPECT_TRUE(SetOption(options, first, "2").ok());
    const absl::Status status = SetOption(options, second, "2");
    EXPECT_NE(status.message().find("given twice"), std::string::npos) << second;
  }
}

TEST(SetOption, ReadsValuesWrittenAsStrings) {
  const GenerationOptions options = Options({{"temperature", "\"0.5\""},
                                             {"top_k", "\"7\""},
                                             {"max_tokens", "20.0"},
                                             {"do_sample", "\"true\""},
                                             {"stop", "\"[\\\"a\\\", \\\"b\\\"]\""},
                                             {"bad_words_ids", "\"[[5, 7]]\""},
                                             {"repetition_penalty", "null"}});
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_EQ(options.top_k, 7);
  EXPECT_EQ(options.max_new_tokens, 20);
  EXPECT_EQ(options.do_sample, true);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.others.at("bad_words_ids"), "[[5,7]]");
  EXPECT_FALSE(options.repetition_penalty.has_value());
}

TEST(SetOption, PlainStringIsOneStop) {
  EXPECT_EQ(Options({{"stop", "\"END\""}}).stop, std::vector<std::string>{"END"});
  EXPECT_EQ(Options({{"stop", "\"7\""}}).stop, std::vector<std::string>{"7"});
  EXPECT_EQ(Options({{"stop", "\"[\""}}).stop, std::vector<std::string>{"["});
}

TEST(Settings, RefusesValuesOutOfRange) {
  const struct {
    const char *name, *json, *message;
  } kCases[] = {
      {"temperature", "-0.1", "temperature: -0.1 is not at least 0"},
      {"temperature", "1e39", "temperature: 1e+39 is more than a number of its type may be"},
      {"top_p", "0", "top_p: 0 is not in (0, 1]"},
      {"top_p", "1.1", "top_p: 1.1 is not in (0, 1]"},
      {"top_k", "-1", "top_k: -1 is not at least 0"},
      {"min_p", "1.5", "min_p: expected a number in [0, 1], found 1.5"},
      {"typical_p", "0", "typical_p: expected a number in (0, 1], found 0"},
      {"epsilon_cutoff", "2", "epsilon_cutoff"},
      {"eta_cutoff", "-1", "eta_cutoff"},
      {"repetition_penalty", "0", "repetition_penalty: 0 is not above 0"},
      {"encoder_repetition_penalty", "0",
       "encoder_repetition_penalty: expected a number above 0, found 0"},
      {"max_tokens", "-1", "max_new_tokens: -1 is not at least 0"},
      {"max_tokens", "94",
       "94 new tokens after a prompt of 7 are 101 in all; the model's limit is 100"},
      {"max_length", "101", "max_length: 94 new tokens"},
      {"max_length", "7", "max_length: 7 leaves nothing to generate after a prompt of 7"},
      {"min_tokens", "-2", "min_new_tokens: -2"},
      {"n", "0", "num_return_sequences: 0 is not in [1, 128]"},
      {"n", "129", "num_return_sequences: 129"},
      {"n", "2", "num_return_sequences: 2 sequences of greedy search are the same one"},
      {"num_beams", "0", "num_beams: 0 is not in [1, 64]"},
      {"num_beams", "65", "num_beams: 65"},
      {"no_repeat_ngram_size", "-1", "no_repeat_ngram_size: -1"},
      {"logprobs", "21", "logprobs: 21 is not in [0, 20]"},
      {"logprobs", "-1", "logprobs: -1"},
      {"stop", "\"\"", "stop: an empty string"},
      {"stop", "[\"a\", \"\"]", "stop: an empty string"},
      {"bad_words_ids", "[[]]", "bad_words_ids: expected a list"},
      {"bad_words_ids", "[[50]]", "each id in [0, 50), found [[50]]"},
      {"bad_words_ids", "[5]", "bad_words_ids"},
      {"suppress_tokens", "[-1]", "suppress_tokens"},
      {"eos_token_id", "\"x\"", "eos_token_id: expected a token id"},
      {"forced_bos_token_id", "50", "forced_bos_token_id: expected a token id in [0, 50)"},
      {"forced_eos_token_id", "[1, 2.5]", "forced_eos_token_id"},
      {"exponential_decay_length_penalty", "[1]", "exponential_decay_length_penalty"},
      {"exponential_decay_length_penalty", "[-1, 2]", "exponential_decay_length_penalty"},
      {"sequence_bias", "[[[1], \"a\"]]", "sequence_bias"},
      {"min_length", "-1", "min_length: expected an integer of at least 0"},
      {"remove_invalid_values", "3", "remove_invalid_values: expected true or false"},
  };
  for (const auto& test : kCases) {
    const auto settings = ResolveSettings(Options({{test.name, test.json}}), {}, Context());
    EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument) << test.name;
    EXPECT_NE(settings.status().message().find(test.message), std::string::npos)
        << test.name << " " << test.json << ": " << settings.status().message();
  }
}

TEST(Settings, RefusesNumbersThatAreNone) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    GenerationOptions options;
    options.temperature = value;
    EXPECT_EQ(ResolveSettings(options, {}, Context()).status().code(),
              absl::StatusCode::kInvalidArgument);
    options = {};
    options.top_p = value;
    EXPECT_FALSE(ResolveSettings(options, {}, Context()).ok());
    options = {};
    options.length_penalty = value;
    EXPECT_FALSE(ResolveSettings(options, {}, Context()).ok());
    options = {};
    options.repetition_penalty = value;
    EXPECT_FALSE(ResolveSettings(options, {}, Context()).ok());
  }
}

TEST(Settings, RefusesLongStopsAndUnknownOthers) {
  GenerationOptions options;
  options.stop.assign(17, "x");
  EXPECT_NE(ResolveSettings(options, {}, Context())
                .status()
                .message()
                .find("stop: 17 strings, at most 16"),
            std::string::npos);
  options.stop = {std::string(2000, 'x')};
  EXPECT_FALSE(ResolveSettings(options, {}, Context()).ok());
  options = Options({{"num_beams", "2"}, {"stop", "\"x\""}});
  EXPECT_FALSE(ResolveSettings(options, {}, Context()).ok());
  options = {};
  options.others["penalty_beta"] = "1";
  EXPECT_NE(ResolveSettings(options, {}, Context())
                .status()
                .message()
                .find("penalty_beta: no such generation option"),
            std::string::npos);
}

TEST(Settings, MoreSequencesThanBeamsIsAnError) {
  const auto settings = ResolveSettings(Options({{"num_beams", "2"}, {"n", "3"}}), {}, Context());
  EXPECT_NE(settings.status().message().find("3 is more than num_beams 2"), std::string::npos);
}

TEST(Settings, SamplesWhereTheRequestOrTheSurfaceSaysSo) {
  constexpr auto kOpenAi = GenerationDefaults::kOpenAi;
  EXPECT_FALSE(Resolve({}).sample);
  EXPECT_TRUE(Resolve(Options({{"temperature", "0.7"}})).sample);
  EXPECT_FALSE(Resolve(Options({{"temperature", "0"}})).sample);
  EXPECT_FALSE(Resolve(Options({{"temperature", "1e-300"}})).sample);
  EXPECT_FALSE(Resolve(Options({{"temperature", "0.7"}, {"do_sample", "false"}})).sample);
  EXPECT_FALSE(Resolve(Options({{"do_sample", "true"}, {"temperature", "0"}})).sample);
  EXPECT_TRUE(Resolve({}, Options({{"do_sample", "true"}})).sample);
  EXPECT_FALSE(Resolve(Options({{"temperature", "0"}}), Options({{"do_sample", "true"}})).sample);
  // In a model's file a temperature alone does not sample, as in HuggingFace.
  EXPECT_FALSE(Resolve({}, Options({{"temperature", "0.7"}})).sample);
  EXPECT_TRUE(Resolve(Options({}, kOpenAi)).sample);
  EXPECT_EQ(Resolve(Options({}, kOpenAi)).temperature, 1);
  EXPECT_FALSE(Resolve(Options({}, kOpenAi), Options({{"do_sample", "false"}})).sample);
  EXPECT_FALSE(Resolve(Options({{"num_beams", "3"}}, kOpenAi)).sample);
}

TEST(Settings, RequestsWinOverModels) {
  const GenerationOptions model = Options({{"max_length", "50"},
                                           {"repetition_penalty", "1.5"},
                                           {"num_beams", "4"},
                                           {"early_stopping", "\"never\""},
                                           {"eos_token_id", "[3, 4]"},
                                           {"stop", "\"m\""}});
  const GenerationSettings by_model = Resolve(Options({{"stop", "[]"}, {"num_beams", "1"}}), model);
  EXPECT_EQ(by_model.max_new_tokens, 43);
  EXPECT_EQ(by_model.repetition_penalty, 1.5);
  EXPECT_EQ(by_model.early_stopping, EarlyStopping::kNever);
  EXPECT_EQ(by_model.eos, (std::vector<int32_t>{3, 4}));
  const GenerationSettings by_request = Resolve(Options({{"max_tokens", "5"},
                                                         {"repetition_penalty", "1"},
                                                         {"num_beams", "1"},
                                                         {"early_stopping", "true"},
                                                         {"eos_token_id", "6"},
                                                         {"stop", "\"r\""}}),
                                                model);
  EXPECT_EQ(by_request.max_new_tokens, 5);
  EXPECT_EQ(by_request.repetition_penalty, 1);
  EXPECT_EQ(by_request.early_stopping, EarlyStopping::kYes);
  EXPECT_EQ(by_request.eos, std::vector<int32_t>{6});
  EXPECT_EQ(by_request.stop, std::vector<std::string>{"r"});
  EXPECT_EQ(Resolve({}).eos, kEos);
}

TEST(Settings, LengthsOfTheModelGiveWayToTheRoom) {
  EXPECT_EQ(Resolve({}).max_new_tokens, 16);
  EXPECT_EQ(Resolve({}, Options({{"max_tokens", "500"}})).max_new_tokens, 93);
  EXPECT_EQ(Resolve({}, Options({{"max_length", "5"}})).max_new_tokens, 16);
  EXPECT_EQ(Resolve({}, Options({{"max_length", "20"}})).max_new_tokens, 13);
  EXPECT_EQ(Resolve({}, Options({{"max_length", "20"}})).max_length, 20);
}

// The rule of HuggingFace's generate, whether the request or the model sets the minima.
TEST(Settings, OfTwoMinimaThatOfNewTokensCounts) {
  const GenerationSettings both = Resolve(Options({{"min_length", "20"}, {"min_tokens", "4"}}));
  EXPECT_EQ(both.min_new_tokens, 4);
  EXPECT_EQ(both.min_length, 0);
  const GenerationOptions model = Options({{"min_length", "20"}});
  EXPECT_EQ(Resolve(Options({{"min_tokens", "0"}}), model).min_length, 0);
  EXPECT_EQ(Resolve({}, model).min_length, 20);
}

// max_len_a times the source plus max_len_b, and the end: a source of 10 tokens, room for 92.
TEST(Settings, FairseqLengths) {
  SettingsContext context = Context();
  context.fairseq_source = 10;
  const auto tokens = [&](const GenerationOptions& request, const GenerationOptions& model = {}) {
    const auto settings = ResolveSettings(request, model, context);
    EXPECT_TRUE(settings.ok()) << settings.status();
    EXPECT_TRUE(settings->fairseq);
    return settings->max_new_tokens;
  };
  EXPECT_EQ(tokens({}), 93);  // 200 by default: cut to the room.
  EXPECT_EQ(tokens(Options({{"max_len_b", "20"}})), 21);
  EXPECT_EQ(tokens(Options({{"max_len_a", "1.55"}, {"max_len_b", "2"}})), 18);
  EXPECT_EQ(tokens(Options({{"max_len_b", "0"}})), 1);
  EXPECT_EQ(tokens(Options({{"max_tokens", "30"}})), 30);
  const GenerationOptions model = Options({{"max_len_a", "2"}, {"max_len_b", "5"}});
  EXPECT_EQ(tokens({}, model), 26);
  EXPECT_EQ(tokens(Options({{"max_len_b", "7"}}), model), 28);
  EXPECT_EQ(tokens(Options({{"max_tokens", "30"}}), model), 30);
  EXPECT_EQ(
      tokens(Options({{"max_len_a", "1"}, {"max_len_b", "0"}}), Options({{"max_tokens", "9"}})),
      11);
  const auto settings = ResolveSettings(Options({{"min_length", "3"}}), {}, context);
  EXPECT_EQ(settings->min_new_tokens, 3);
  EXPECT_EQ(settings->min_length, 0);
}

TEST(Settings, FairseqLengthsAreRefused) {
  SettingsContext context = Context();
  const auto refused = [&](const GenerationOptions& options, const std::string& part) {
    const auto settings = ResolveSettings(options, {}, context);
    ASSERT_FALSE(settings.ok()) << part;
    EXPECT_NE(settings.status().message().find(part), std::string::npos) << settings.status();
  };
  refused(Options({{"max_len_a", "1"}}), "max_len_a: only");
  context.fairseq_source = 10;
  refused(Options({{"max_len_a", "-1"}}), "max_len_a");
  refused(Options({{"max_len_b", "-1"}}), "max_len_b");
  refused(Options({{"max_len_b", "1"}, {"max_tokens", "5"}}), "max_tokens");
}

TEST(Settings, IgnoredEndIsNoEnd) {
  GenerationOptions options;
  options.ignore_eos = true;
  EXPECT_TRUE(Resolve(options).eos.empty());
  EXPECT_EQ(Resolve(Options({{"bad_words_ids", "[[9], [9, 1]]"}})).bad_words.size(), 1u);
}

}  // namespace
}  // namespace longview::models
