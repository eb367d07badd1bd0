// A text encoder of plain transformer layers: every token attends to its whole document or to a
// window around itself; positions are a table or rotary; norms stand before or behind the parts of
// a layer. The families that are of this kind read their own config.json into it.
#pragma once

#include <string>
#include <vector>

#include "models/dense/rowwise.h"
#include "models/encoder/facts.h"
#include "models/layers/block_tail.h"
#include "models/model.h"
#include "models/transformer/rotary.h"

namespace longview::models {

struct TransformerConfig {
  // Attention of a layer.
  struct Layer {
    int window = -1;  // Tokens seen on each side; negative: the whole document.
    int rotary = -1;  // Index into `rotary`; negative: none.
  };

  std::string architecture;  // architectures[0]
  EncoderHead head = EncoderHead::kNone;
  int vocab = 0;
  int width = 0;  // H
  int heads = 0;
  int intermediate = 0;
  std::vector<Layer> layers;
  std::vector<RotaryConfig> rotary;
  int max_tokens = 0;
  int positions = 0;        // Rows of the position table; 0: none.
  bool behind_pad = false;  // The first token's position is `pad` + 1, not 0.
  int types = 0;            // Rows of the token type table; 0: none.
  int pad = -1;
  int sep = -1;
  NormPlace norms = NormPlace::kPost;
  float norm_eps = 0;
  Activation activation = Activation::kGelu;
  Activation head_activation = Activation::kGelu;
  bool pools_mean = false;  // Classification reads the mean over the tokens, not the first one.
  bool tied = true;         // The masked LM's decoder is the word table.
  bool has_pooler = false;
  // Presence of biases in the layers, norms and heads.
  bool norm_bias = true, attention_bias = true, mlp_bias = true, head_bias = true,
       decoder_bias = true;
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;

  int head_dim() const { return width / heads; }
};

}  // namespace longview::models
