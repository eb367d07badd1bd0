// Sums of rows with the residual stream x, which is fp32 in every compute type.
#pragma once

#include "models/ops/backend.h"

namespace longview::models::ops {

// Post-norm: x = norm(x + y), out = x in T. Pre-norm: x = x + y, out = norm(x) in T.
struct Residual {
  Rows x;                  // [rows, width] fp32
  Rows y;                  // T; not given: zeros.
  const NormWeight* norm;  // Null: none.
  NormPlace place;
  Rows out;  // T; not given, or x itself: nothing more is written.

  OpWork Work() const { return {.rows = x.elements()}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// out = x in T. REQUIRES: out is not x.
struct Narrow {
  Rows x;
  Rows out;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// out = in + added[index[i]] in T, a row without an index (negative) as it is. `out` may be `in`.
struct AddRows {
  Rows in;
  Rows added;
  IndexRef index;
  Rows out;

  OpWork Work() const { return {.rows = in.elements()}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace longview::models::ops
