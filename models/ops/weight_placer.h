// Brings the weights of a forward to where it runs: packed for the host, or into one block of a
// device's memory.
//
//   WeightPlacer place(load, store);           // store: null for the host
//   Weight out = place.Linear("layer.0.out", width, width);
//   NormWeight norm = place.Norm(load.LayerNorm("layer.0.norm", width, eps), width);
//
// A device's memory is asked for once: the loading function runs over a store without memory, which
// counts, and again over the allocated store, which fills. Both runs make the same calls in the
// same order. A loader that reads nothing (WeightLoader without a compute type) gives handles that
// have sizes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/device/device_weights.h"
#include "models/layers/weight_loader.h"
#include "models/ops/weight.h"

namespace longview::models {

// The memory of one model's weights on a device. Used by the thread that loads, within a
// Device::Turn once it is allocated.
class DeviceStore {
 public:
  explicit DeviceStore(Compute compute) : compute_(compute) {}

  // Bytes of what was placed so far.
  size_t bytes() const { return carver_.used(); }

  // Ends counting: takes bytes() of the device's memory, to be placed anew from the start. Throws
  // DeviceError.
  void Allocate(const Device& device);
  bool allocated() const { return block_ != nullptr; }

  Compute compute() const { return compute_; }
  DevicePlaces places() { return DevicePlaces(compute_, carver_); }
  // REQUIRES: allocated().
  DeviceFill& fill() { return *fill_; }
  // The memory, whose owner outlives all handles.
  std::unique_ptr<DeviceBlock> TakeBlock() { return std::move(block_); }

 private:
  const Compute compute_;
  Carver carver_{nullptr};
  std::unique_ptr<DeviceBlock> block_;
  std::optional<DeviceFill> fill_;
};

// Borrows the loader and the store. Errors become the loader's. May throw DeviceError and what
// LibTorch throws.
class WeightPlacer {
 public:
  WeightPlacer(WeightLoader& load, DeviceStore* store) : load_(load), store_(store) {}

  // Linears in the form of WeightLoader::Dense and Stack; int8 on the host where the format says
  // so, as those of Split are. Embeddings, convolutions and logits, which the others place, never
  // are.
  Weight Linear(const std::string& name, int64_t out, int64_t in, bool bias = true) {
    return Stack("", {{name, out, bias}}, in);
  }
  Weight Stack(const std::string& prefix, const std::vector<WeightLoader::Part>& parts, int64_t in);

  // Linears in the form of WeightLoader::Split.
  std::vector<Weight> Split(const std::string& name, int64_t parts, int64_t out, int64_t in,
                            bool bias);

  // A linear of these values; empty where nothing is read.
  Weight Pack(const std::string& name, std::span<const float> values, std::vector<float> bias,
              int64_t out, int64_t in);

  // Pack for rows of pixels, which ops::MakeTokens gathers.
  Weight Pixels(const std::string& name, std::span<const float> values, std::vector<float> bias,
                int64_t out, int64_t in);
  // Elements of such a row on a device, `in` and zeros behind them: libraries' products of odd
  // widths are slow, and in some of them a row's bits depend on its place.
  static constexpr int64_t PixelColumns(int64_t in) { return (in + 15) / 16 * 16; }

  // Convolution in the form of WeightLoader::Taps.
  Weight Taps(const std::string& name, int64_t out, int64_t in, int64_t kernel);

  NormWeight Norm(models::Norm norm, int64_t width);

  // A table of the checkpoint, which the host keeps (layers/kept_table.h), once per tensor; or of
  // these values. Both may be empty where nothing is read.
  Table Stored(const TensorView* tensor, int64_t rows, int64_t width);
  Table Values(std::vector<float> values, int64_t rows, int64_t width);
  // A tensor of the checkpoint; null where nothing is read.
  Matrix StoredMatrix(const TensorView* tensor, int64_t rows, int64_t width);
  // INVALID_ARGUMENT, naming `name`, if a value is beyond a device's type.
  TypedRows Typed(const std::string& name, std::vector<float> values, int64_t rows, int64_t width);

 private:
  // `make` asks the loader for a linear of these sizes.
  template <typename Make>
  Weight Place(int64_t out, int64_t in, Make&& make);
  bool fills() const { return store_ != nullptr && store_->allocated(); }

  WeightLoader& load_;
  DeviceStore* const store_;
};

}  // namespace longview::models
