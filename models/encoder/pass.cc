#include "models/encoder/pass.h"

namespace longview::models {

void CountPass(EncoderPass& pass, Ops& count) {
  pass.Stage(count);
  pass.Take(count);
  pass.Embed(count);
  for (int layer = 0; layer < pass.layers(); ++layer) pass.Layer(count, layer);
}

}  // namespace longview::models
