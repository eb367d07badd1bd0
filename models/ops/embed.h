// The sum of rows of embedding tables, with a norm behind it where there is one.
#pragma once

#include "models/ops/backend.h"

namespace longview::models::ops {

// x = factor * words[ids] + positions[places] + types[kinds], then x = norm(x).
struct Embed {
  const Table* words = nullptr;
  const Table* positions = nullptr;  // Null: none, as below.
  const Table* types = nullptr;
  IndexRef ids, places, kinds;  // [rows]
  float factor = 1;
  bool rounds_words = false;  // On the host factor * words is rounded before it is added to.
  const NormWeight* norm = nullptr;
  Rows x;      // [rows, width] fp32
  Rows input;  // T [rows, width] gets a copy of x; not given: none.

  OpWork Work() const { return {.rows = x.elements()}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace longview::models::ops
