// Every translation case of golden/luna through requests: encoder states and teacher-forced logits,
// whole, in pieces and token by token; fairseq's greedy and beam search; text by dictionaries.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/models/generation/generator_driver.h"
#include "tests/models/golden/edited_model.h"
#include "tests/models/golden/golden_case.h"
#include "tests/models/luna_decoder/luna_case.h"

namespace longview::models {
namespace {

constexpr double kCacheBytes = 64 << 20;

std::vector<std::string> Cases() {
  std::vector<std::string> names = GoldenCase::Names("luna");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("mt_"); });
  return names;
}

std::unique_ptr<Model> Load(const std::string& directory, const std::string& dtype = "fp32") {
  absl::StatusOr<std::unique_ptr<Model>> model =
      LoadModel(directory, {.dtype = dtype, .device = "cpu", .cache_bytes = kCacheBytes});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

Request Translate(TokenInput source, GenerationOptions options) {
  Request request;
  request.task = Task::kText2TextGeneration;
  request.tokens = std::move(source);
  request.generation = std::move(options);
  return request;
}

class LunaTranslation : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<int32_t> Ids(const std::string& name) const {
    const std::vector<int64_t> wide = golden_.Integers(name);
    return {wide.begin(), wide.end()};
  }

  // Logits of the case's outputs and the last states of its source.
  Request TeacherForced(int item) const {
    Request request = Translate(golden_.Tokens(item), NewTokens(0));
    request.decoder_tokens.emplace().ids = Ids("decoder_input_ids." + std::to_string(item));
    request.tensors = {"logits", "encoder_last_hidden_state"};
    return request;
  }

  const GoldenCase golden_{GetParam(), "luna"};
};

TEST_P(LunaTranslation, TeacherForcedWholeAndInPieces) {
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = Load(golden_.directory(), dtype);
    if (model->info().dtype != dtype) continue;
    double largest = 0;
    for (int i = 0; i < golden_.items(); ++i) {
      const std::string suffix = "." + std::to_string(i);
      const Answer answer = Generate(*model, TeacherForced(i));
      ASSERT_EQ(answer.tensors.size(), 2u);
      const double error =
          LargestDifference(answer.tensors[0].floats(), golden_.Expected("logits" + suffix));
      EXPECT_LE(error, dtype == "fp32" ? golden_.tolerance("logits") : 0.3) << "item " << i;
      EXPECT_LE(
          LargestDifference(answer.tensors[1].floats(), golden_.Expected("encoder_out" + suffix)),
          dtype == "fp32" ? golden_.tolerance("hidden") : 0.2)
          << "item " << i;
      const Answer pieces = Generate(*model, TeacherForced(i), 1);
      EXPECT_EQ(pieces.tensors[0].data, answer.tensors[0].data) << "item " << i;
      largest = std::max(largest, error);
    }
    std::printf("%-24s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), largest);
    EXPECT_EQ(model->cache().used, 0);
  }
}

TEST_P(LunaTranslation, StepByStepEqualsTeacherForced) {
  LunaCase model(golden_.directory(), "fp32");
  const int vocab = model.config().vocab;
  for (int i = 0; i < golden_.items(); ++i) {
    EncoderSequence source;
    source.ids = golden_.Tokens(i).ids;
    source.roles.assign(source.ids.size(), kernels::kLocalToken);
    ASSERT_TRUE(model.decoder().encoder()->rules().Place("text", source).ok());
    const auto sequence = model.decoder().encoder()->Open(source);
    const std::vector<int32_t> ids = Ids("decoder_input_ids." + std::to_string(i));
    const DecoderFeed first{.sequence = sequence.get(),
                            .tokens = std::span(ids).first(1),
                            .encode = sequence->unencoded()};
    std::vector<float> logits = RunStep(model.decoder(), {&first, 1})[0];
    const std::vector<float> rest = model.Step(*sequence, std::span(ids).subspan(1));
    logits.insert(logits.end(), rest.begin(), rest.end());
    EXPECT_EQ(logits.size(), ids.size() * vocab);
    EXPECT_LE(LargestDifference(logits, golden_.Expected("logits." + std::to_string(i))),
              golden_.tolerance("logits"))
        << "item " << i;
  }
}

// The scratch of the encoder's layers goes back when they are done, not with the last fork.
TEST_P(LunaTranslation, ADocumentThatIsReadHoldsWhatDecodingReadsAlone) {
  LunaCase model(golden_.directory(), "fp32");
  Decoder& decoder = model.decoder();
  EncoderSequence source;
  source.ids = golden_.Tokens(0).ids;
  source.roles.assign(source.ids.size(), kernels::kLocalToken);
  ASSERT_TRUE(decoder.encoder()->rules().Place("text", source).ok());
  const double most = decoder.encoder()->Cost(source).bytes;
  {
    const auto sequence = decoder.encoder()->Open(source);
    const DecoderFeed feed{.sequence = sequence.get(),
                           .tokens = {},
                           .wanted = WantedLogits::kNone,
                           .encode = sequence->unencoded()};
    RunStep(decoder, {&feed, 1});
    EXPECT_GT(decoder.cache().used, 0);
    EXPECT_LT(decoder.cache().used, most);
  }
  EXPECT_EQ(decoder.cache().used, 0);
}

// The searches of case.json: every finished output of fairseq's, best first, with its score.
TEST_P(LunaTranslation, GreedyAndBeamSearch) {
  const auto model = Load(golden_.directory());
  for (const auto& [name, search] : golden_.description()["generation"].items()) {
    const int beams = search["beam_size"];
    GenerationOptions options;
    options.others = {{"max_len_a", search.value("max_len_a", nlohmann::json(0)).dump()},
                      {"max_len_b", search["max_len_b"].dump()},
                      {"min_length", search.value("min_len", nlohmann::json(1)).dump()}};
    options.num_beams = beams;
    options.num_return_sequences = beams;
    options.length_penalty = search.value("len_penalty", 1.0);
    for (int i = 0; i < golden_.items(); ++i) {
      const std::string suffix = "." + std::to_string(i);
      const std::vector<int64_t> padded = golden_.ExpectedIntegers(name + ".tokens" + suffix);
      const std::vector<double> scores = golden_.ExpectedExactly(name + ".scores" + suffix);
      const auto longest = static_cast<ptrdiff_t>(padded.size() / scores.size());
      const Answer answer = Generate(*model, Translate(golden_.Tokens(i), options));
      ASSERT_EQ(answer.sequences.size(), scores.size()) << name << suffix;
      for (size_t k = 0; k < scores.size(); ++k) {
        const auto row = padded.begin() + static_cast<ptrdiff_t>(k) * longest;
        std::vector<int32_t> want(row, row + longest);
        while (want.back() == 1) want.pop_back();
        EXPECT_EQ(answer.sequences[k].token_ids, want) << name << suffix << " output " << k;
        if (beams == 1) continue;
        EXPECT_NEAR(answer.sequences[k].score, scores[k], golden_.tolerance("scores"))
            << name << suffix << " output " << k;
      }
    }
  }
}

TEST_P(LunaTranslation, SourcesAmongBatchMatesPaddedOrAsText) {
  const auto model = Load(golden_.directory());
  const GenerationOptions options = NewTokens(9);
  std::vector<Answer> alone;
  std::vector<Live> lives;
  for (int i = 0; i < golden_.items(); ++i) {
    const TokenInput source = golden_.Tokens(i);
    alone.push_back(Generate(*model, Translate(source, options)));
    TokenInput left = source;
    left.ids.insert(left.ids.begin(), 3, 1);
    EXPECT_EQ(Generate(*model, Translate(left, options)).sequences[0].token_ids,
              alone.back().sequences[0].token_ids)
        << "item " << i << " padded on its left";
    Request text = Translate({}, options);
    text.tokens.reset();
    text.text = golden_.description()["texts"][i].get<std::string>();
    const Answer of_text = Generate(*model, text);
    EXPECT_EQ(of_text.sequences[0].token_ids, alone.back().sequences[0].token_ids)
        << "item " << i << " as text";
    lives.push_back(StartOn(*model, Translate(source, options)));
  }
  while (true) {
    std::vector<Live*> running;
    for (Live& live : lives) {
      if (!live.generation->done()) running.push_back(&live);
    }
    if (running.empty()) break;
    StepOnce(*model, running, 16);
  }
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(lives[i].generation->Take()->sequences[0].token_ids, alone[i].sequences[0].token_ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LunaTranslation, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param; });

// The output matrix split in two, by a permutation and a row that nothing reads.
TEST(LunaTranslationFiles, OutputsThroughAnotherWidth) {
  const GoldenCase golden("mt_learned_embln", "luna");
  EditedModel edited(golden);
  const std::string name = "decoder.output_projection.weight";
  const EditedTensor whole = edited.tensors.at(name);
  const int64_t vocab = whole.shape[0], width = whole.shape[1], inner = width + 1;
  EditedTensor out = {{vocab, inner}, std::vector<float>(static_cast<size_t>(vocab * inner), 3)};
  EditedTensor project = {{inner, width}, std::vector<float>(static_cast<size_t>(inner * width))};
  for (int64_t i = 0; i < width; ++i) {
    const int64_t from = (5 * i + 3) % width;
    project.values[static_cast<size_t>(i * width + from)] = 1;
    for (int64_t v = 0; v < vocab; ++v) {
      out.values[static_cast<size_t>(v * inner + i)] =
          whole.values[static_cast<size_t>(v * width + from)];
    }
  }
  edited.config["decoder_output_dim"] = inner;
  const auto missing = edited.Load();
  EXPECT_FALSE(missing.ok());
  edited.tensors[name] = out;
  edited.tensors["decoder.project_out_dim.weight"] = project;
  const auto model = Load(edited.Write());
  Request request = Translate(golden.Tokens(0), NewTokens(0));
  const std::vector<int64_t> ids = golden.Integers("decoder_input_ids.0");
  request.decoder_tokens.emplace().ids = {ids.begin(), ids.end()};
  request.tensors = {"logits"};
  const Answer answer = Generate(*model, request);
  EXPECT_LE(LargestDifference(answer.tensors.at(0).floats(), golden.Expected("logits.0")),
            golden.tolerance("logits"));
}

// Without the key outputs end where fairseq's do.
TEST(LunaTranslationFiles, OutputsEndWithoutEosInTheConfig) {
  const GoldenCase golden("mt_tied", "luna");
  EditedModel edited(golden);
  const Request request = Translate(golden.Tokens(0), NewTokens(20));
  const std::vector<int32_t> want = Generate(*Load(edited.Write()), request).sequences[0].token_ids;
  EXPECT_EQ(want.back(), 2);
  edited.config.erase("eos_token_id");
  EXPECT_EQ(Generate(*Load(edited.Write()), request).sequences[0].token_ids, want);
}

TEST(LunaTranslationFiles, WhatDoesNotFitIsRefusedByName) {
  const GoldenCase golden("mt_tied", "luna");
  const auto model = Load(golden.directory());
  const auto refusal = [&](std::vector<int32_t> ids) {
    return Refusal(*model, Translate({std::move(ids), {}, {}, {}}, NewTokens(1)));
  };
  EXPECT_NE(refusal(std::vector<int32_t>(65, 5)).find("64"), std::string::npos);
  EXPECT_NE(refusal({5, 44}).find("44"), std::string::npos);
  EXPECT_NE(refusal({1, 1}).find("every token is masked"), std::string::npos);
  EXPECT_NE(Refusal(*model, Translate({{5, 2}, {}, {}, {}}, NewTokens(65))), "");
  EXPECT_EQ(Refusal(*model, Translate({{5, 2}, {}, {}, {}}, NewTokens(64))), "");

  const Inspection good = InspectDirectory(golden.directory());
  EXPECT_TRUE(good.servable) << good.error;
  const std::pair<const char*, const char*> broken[] = {
      {"decoder.layers.1.encoder_attn.out_proj.bias", "encoder_attn.out_proj.bias"},
      {"encoder.layers.0.fc1.weight", "encoder.layers.0.fc1.weight"}};
  for (const auto& [name, part] : broken) {
    EditedModel edited(golden);
    edited.tensors.erase(name);
    EXPECT_NE(edited.Load().status().message().find(part), std::string::npos) << name;
    EXPECT_FALSE(InspectDirectory(edited.directory()).servable);
  }
  const std::pair<const char*, nlohmann::json> keys[] = {
      {"decoder_output_dim", 16}, {"decoder_heads", 5},        {"decoder_start_token_id", 44},
      {"head", "causal_lm"},      {"tie_layer_weights", true}, {"decoder_layers", 0}};
  for (const auto& [key, value] : keys) {
    EditedModel edited(golden);
    edited.config[key] = value;
    EXPECT_NE(edited.Load().status().message().find(key), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace longview::models
