// Linears over the rows of a ragged batch. A few rows (Rows::few) go through the weight's second
// pack, which reads it once for all of them.
#pragma once

#include "models/ops/backend.h"

namespace longview::models {

// The work of a product of all rows of `in`.
OpWork ProductWork(const Weight& weight, const Rows& in);

// Rotary positions of queries and keys: the halves of a head's vector turned against each other by
// the angles of its row's place.
struct Rotary {
  const Table* angles = nullptr;  // Values [places, D]: D / 2 cosines, then D / 2 sines.
  IndexRef places;                // [rows]
  int64_t columns = 0;            // The first ones of a row, heads of D side by side.
};

namespace ops {

// out = in W^T + b, in T or in fp32, as `out` is. REQUIRES: `in` is dense and was taken with a
// panel behind it.
struct Project {
  const Weight& weight;
  Rows in;
  Rows out;

  OpWork Work() const { return ProductWork(weight, in); }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Project, then the rotation.
struct ProjectRotated {
  const Weight& weight;
  Rotary rotary;
  Rows in;
  Rows out;

  OpWork Work() const { return ProductWork(weight, in); }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Project with bias[entries[i]] instead of b (`bias` null: b); without an entry (negative) a row
// becomes zeros. T.
struct ProjectPlaces {
  const Weight& weight;
  const Table* bias;
  IndexRef entries;
  Rows in;
  Rows out;

  OpWork Work() const { return ProductWork(weight, in); }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Post-norm: x = norm(x + in W^T + b), input = x in T; `input` may be x. Pre-norm:
// x = x + in W^T + b, input = norm(x) in T.
struct ProjectAdded {
  const Weight& weight;
  Rows in;
  const NormWeight& norm;
  NormPlace place;
  Rows x;      // [rows, width] fp32
  Rows input;  // T

  OpWork Work() const { return ProductWork(weight, in); }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// out = norm(activation(in W^T + b)) in T; `out` may be `in`.
struct ProjectActivated {
  const Weight& weight;
  Activation activation;
  const NormWeight& norm;
  Rows in;
  Rows out;

  OpWork Work() const { return ProductWork(weight, in); }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
