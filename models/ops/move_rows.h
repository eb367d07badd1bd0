// Rows that are copied from place to place.
#pragma once

#include "models/ops/backend.h"

namespace longview::models::ops {

// to[i] = from[rows[i]]; without a row (negative) it stays as it is. REQUIRES: equal widths and
// types.
struct Gather {
  Rows from;
  IndexRef rows;
  Rows to;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// to[i] = table[rows[i]], fp32.
struct LookUp {
  const Table& table;
  IndexRef rows;
  Rows to;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// to[places[i]] = from[i]; without a place (negative) it is left out. REQUIRES: equal widths and
// types, different places.
struct Scatter {
  Rows from;
  IndexRef places;
  Rows to;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// kept[i] = x[rows[i]] for ascending rows; `kept` is Backend::TakeKept's, and x is gone.
struct Keep {
  Rows x;
  IndexRef rows;
  Rows kept;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// rows = zeros. REQUIRES: dense rows.
struct Clear {
  Rows rows;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace longview::models::ops
