// Kernels of text encoders on a device against their definitions in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cuda/support/row_values.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::Download;
using testing::Elements;
using testing::Normed;
using testing::OnAll;
using testing::Random;
using testing::Rounding;
using testing::TestDevice;
using testing::TestDevices;

void* Blank(TestDevice& device, size_t count, DType dtype) {
  return Elements(std::vector<float>(count, -9), dtype).Upload(device);
}

class WidthTest : public ::testing::TestWithParam<int> {};

TEST_P(WidthTest, EmbeddingsAreSumsOfTheTablesThatAreThere) {
  const int width = GetParam(), rows = 4;
  const std::vector<float> words = Random(7 * width, 1), places = Random(9 * width, 2),
                           types = Random(2 * width, 3);
  const std::vector<int32_t> ids = {6, 0, 3, 6}, positions = {8, 1, 1, 2}, kinds = {0, 1, 0, 0};
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    for (const int tables : {0, 1, 2, 3}) {
      const EmbedSums args = {device->Upload(words),
                              tables % 2 == 1 ? device->Upload(places) : nullptr,
                              tables / 2 == 1 ? device->Upload(types) : nullptr,
                              device->Upload(ids),
                              device->Upload(positions),
                              device->Upload(kinds),
                              2.5f,
                              device->Allocate<float>(rows * width),
                              rows,
                              width};
      ASSERT_EQ(device->api().encoder.embed(device->stream(), args), 0);
      const std::vector<float> got = device->Download(args.x, rows * width);
      for (int i = 0; i < rows * width; ++i) {
        const int row = i / width, column = i % width;
        double expected = 2.5 * words[ids[row] * width + column];
        if (tables % 2 == 1) expected += places[positions[row] * width + column];
        if (tables / 2 == 1) expected += types[kinds[row] * width + column];
        ASSERT_NEAR(got[i], expected, 4e-6) << tables << " " << i;
      }
    }
  }
}

TEST_P(WidthTest, GateMultipliesTheActivation) {
  const int columns = GetParam(), rows = 3;
  const size_t size = static_cast<size_t>(rows) * columns;
  OnAll([&](TestDevice& device, DType dtype) {
    const Elements y(Random(size, 1), dtype), gates(Random(size, 2), dtype);
    const std::vector<float> bias = Random(columns, 3), gate_bias = Random(columns, 4);
    const GatedRows args = {y.Upload(device),
                            device.Upload(bias),
                            gates.Upload(device),
                            device.Upload(gate_bias),
                            rows,
                            columns,
                            RowActivation::kGelu,
                            dtype};
    ASSERT_EQ(device.api().encoder.gate(device.stream(), args), 0);
    const std::vector<float> got = Download(device, args.y, size, dtype);
    for (size_t i = 0; i < size; ++i) {
      const int column = static_cast<int>(i) % columns;
      const double x = double{y.values[i]} + bias[column];
      const double expected = 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))) *
                              (double{gates.values[i]} + gate_bias[column]);
      ASSERT_NEAR(got[i], expected, 2e-5 + Rounding(dtype) * std::abs(expected)) << i;
    }
  });
}

TEST(EncoderTest, RotationTurnsHalvesOfHeadsAndAddsTheBiasToTheRest) {
  for (const int dim : {2, 24, 64}) {
    const int rows = 3, places = 5, rotated = 4 * dim, columns = 6 * dim, half = dim / 2;
    const size_t size = static_cast<size_t>(rows) * columns;
    const std::vector<int32_t> at = {4, 0, 2};
    OnAll([&](TestDevice& device, DType dtype) {
      const Elements y(Random(size, 1), dtype);
      const std::vector<float> bias = Random(columns, 2), angles = Random(places * dim, 3);
      const RotatedRows args = {y.Upload(device),
                                device.Upload(bias),
                                device.Upload(angles),
                                device.Upload(at),
                                rows,
                                columns,
                                rotated,
                                dim,
                                dtype};
      ASSERT_EQ(device.api().encoder.rotate(device.stream(), args), 0);
      const std::vector<float> got = Download(device, args.y, size, dtype);
      const auto value = [&](int row, int column) {
        return double{y.values[row * columns + column]} + bias[column];
      };
      for (int row = 0; row < rows; ++row) {
        const float* turns = angles.data() + at[row] * dim;
        for (int column = 0; column < columns; ++column) {
          double expected = value(row, column);
          const int j = column % dim % half;
          if (column < rotated && column % dim < half) {
            expected = expected * turns[j] - value(row, column + half) * turns[half + j];
          } else if (column < rotated) {
            expected = expected * turns[j] + value(row, column - half) * turns[half + j];
          }
          ASSERT_NEAR(got[row * columns + column], expected,
                      2e-5 + Rounding(dtype) * std::abs(expected))
              << row << " " << column;
        }
      }
    });
  }
}

TEST_P(WidthTest, PrenormKeepsTheSumAndGivesItsNorm) {
  const int width = GetParam(), rows = 3;
  const size_t size = static_cast<size_t>(rows) * width;
  OnAll([&](TestDevice& device, DType dtype) {
    const std::vector<float> x = Random(size, 1, 3), bias = Random(width, 2);
    const std::vector<float> gamma = Random(width, 3), beta = Random(width, 4);
    const Elements y(Random(size, 5), dtype);
    for (const bool adds : {true, false}) {
      const PrenormRows args = {device.Upload(x),
                                adds ? y.Upload(device) : nullptr,
                                adds ? device.Upload(bias) : nullptr,
                                {device.Upload(gamma), device.Upload(beta), 1e-5f},
                                Blank(device, size, dtype),
                                rows,
                                width,
                                dtype};
      ASSERT_EQ(device.api().encoder.prenorm(device.stream(), args), 0);
      const std::vector<float> sums = device.Download(args.x, size);
      const std::vector<float> got = Download(device, args.out, size, dtype);
      for (int row = 0; row < rows; ++row) {
        std::vector<double> sum;
        for (int i = 0; i < width; ++i) {
          const size_t at = static_cast<size_t>(row) * width + i;
          sum.push_back(double{x[at]} + (adds ? double{bias[i]} + y.values[at] : 0.0));
          ASSERT_NEAR(sums[at], sum.back(), 2e-6);
        }
        const std::vector<double> expected = Normed(sum, gamma, beta, 1e-5);
        for (int i = 0; i < width; ++i) {
          ASSERT_NEAR(got[row * width + i], expected[i],
                      2e-5 + Rounding(dtype) * std::abs(expected[i]))
              << row << " " << i;
        }
      }
    }
  });
}

TEST_P(WidthTest, RowsGetTheBiasOfTheirPlaceAndWhatTheirIndexSays) {
  const int width = GetParam();
  const std::vector<int32_t> entries = {2, 0, -1, 2, 1};
  const auto rows = static_cast<int64_t>(entries.size());
  const size_t size = entries.size() * width;
  OnAll([&](TestDevice& device, DType dtype) {
    const std::vector<float> bias = Random(3 * width, 1);
    const Elements y(Random(size, 2), dtype), added(Random(3 * width, 3), dtype);
    const PlaceBiases placed = {
        y.Upload(device), device.Upload(bias), device.Upload(entries), rows, width, dtype};
    ASSERT_EQ(device.api().encoder.place_bias(device.stream(), placed), 0);
    AddedRows sums = {y.Upload(device),
                      added.Upload(device),
                      device.Upload(entries),
                      Blank(device, size, dtype),
                      rows,
                      width,
                      dtype};
    ASSERT_EQ(device.api().encoder.add(device.stream(), sums), 0);
    const std::vector<float> biased = Download(device, placed.y, size, dtype);
    const std::vector<float> summed = Download(device, sums.out, size, dtype);
    for (size_t i = 0; i < size; ++i) {
      const int entry = entries[i / width];
      const size_t at = static_cast<size_t>(entry) * width + i % width;
      const double of_place = entry < 0 ? 0 : double{y.values[i]} + bias[at];
      const double of_index = y.values[i] + (entry < 0 ? 0.0 : double{added.values[at]});
      ASSERT_NEAR(biased[i], of_place, 2e-6 + Rounding(dtype) * std::abs(of_place)) << i;
      ASSERT_NEAR(summed[i], of_index, 2e-6 + Rounding(dtype) * std::abs(of_index)) << i;
    }
    sums.out = const_cast<void*>(sums.in);
    ASSERT_EQ(device.api().encoder.add(device.stream(), sums), 0);
    EXPECT_EQ(Download(device, sums.out, size, dtype), summed);
  });
}

INSTANTIATE_TEST_SUITE_P(Widths, WidthTest, ::testing::Values(1, 2, 64, 127, 1030));

struct LandmarkCase {
  const char* name;
  int sequences, rank, heads, dim;
  bool own;
  bool norm = true;
};

TEST(DeviceEncoderTest, LandmarksAreJoinedHeadsAfterOneNorm) {
  const LandmarkCase cases[] = {
      {"one", 1, 1, 1, 2, false},
      {"own rows alone", 3, 0, 2, 5, true},
      {"none", 3, 0, 2, 5, false},
      {"many heads", 2, 3, 7, 37, true},
      {"many landmarks", 3, 33, 2, 64, false},
      {"as they are", 2, 3, 2, 5, true, false},
  };
  for (const LandmarkCase& test : cases) {
    SCOPED_TRACE(test.name);
    const int width = test.heads * test.dim, landmarks = test.rank + (test.own ? 1 : 0);
    const int stride = 2 * width + 3;  // Keys, values, something else.
    const size_t pooled = static_cast<size_t>(test.sequences) * test.rank * width;
    const std::vector<float> keys = Random(pooled, 1), values = Random(pooled, 2, 5);
    const std::vector<float> gamma = Random(width, 3), beta = Random(width, 4);
    OnAll([&](TestDevice& device, DType dtype) {
      const Elements own(Random(static_cast<size_t>(test.sequences) * stride, 5), dtype);
      const auto* own_keys = static_cast<std::byte*>(own.Upload(device));
      const size_t size = static_cast<size_t>(test.sequences) * landmarks * 2 * width;
      const RowNorm norm = {device.Upload(gamma), device.Upload(beta), 1e-5f};
      const LandmarkRows args = {device.Upload(keys),
                                 device.Upload(values),
                                 test.own ? own_keys : nullptr,
                                 test.own ? own_keys + width * SizeOf(dtype) : nullptr,
                                 stride,
                                 test.norm ? norm : RowNorm{},
                                 Blank(device, size, dtype),
                                 test.sequences,
                                 test.rank,
                                 test.heads,
                                 test.dim,
                                 dtype};
      ASSERT_EQ(device.api().encoder.landmarks(device.stream(), args), 0);
      const std::vector<float> got = Download(device, args.out, size, dtype);
      for (int row = 0; row < test.sequences * landmarks; ++row) {
        const int s = row / landmarks, k = row % landmarks - (test.own ? 1 : 0);
        for (int part = 0; part < 2; ++part) {
          std::vector<double> joined;
          for (int i = 0; i < width; ++i) {
            const int column = (s * test.heads + i / test.dim) * test.rank + k;
            joined.push_back(k < 0 ? own.values[s * stride + part * width + i]
                                   : (part == 0 ? keys : values)[column * test.dim + i % test.dim]);
          }
          const std::vector<double> expected =
              test.norm ? Normed(joined, gamma, beta, 1e-5) : joined;
          for (int i = 0; i < width; ++i) {
            ASSERT_NEAR(
                got[(2 * row + part) * width + i], expected[i],
                3e-5 * (1 + std::abs(expected[i])) + Rounding(dtype) * std::abs(expected[i]))
                << row << " " << part << " " << i;
          }
        }
      }
    });
  }
}

// Slices of 6 places over 20 rows: whole, short, of one row, with holes, all holes.
struct SliceProblem {
  static constexpr int kPlaces = 6;

  explicit SliceProblem(int width) : width(width), visible(20, 1) {
    for (const int row : {1, 7, 12, 13, 14}) visible[row] = 0;
    for (SliceRows& slice : slices) {
      for (int i = 0; i < slice.rows; ++i) slice.visible += visible[slice.row0 + i];
    }
  }

  int width;
  std::vector<uint8_t> visible;
  std::vector<SliceRows> slices = {{0, 6, 0}, {6, 5, 0}, {12, 3, 0}, {19, 1, 0}};
};

TEST(DeviceEncoderTest, SlicesBecomeMeansOrLargestValues) {
  for (const int width : {1, 65, 1030}) {
    const SliceProblem problem(width);
    OnAll([&](TestDevice& device, DType dtype) {
      const Elements x(Random(20 * width, 1, 3), dtype);
      const size_t size = problem.slices.size() * width;
      for (const int largest : {0, 1}) {
        const PoolSlices args = {x.Upload(device),
                                 device.Upload(problem.visible),
                                 device.Upload(problem.slices),
                                 static_cast<int32_t>(problem.slices.size()),
                                 width,
                                 largest,
                                 Blank(device, size, dtype),
                                 dtype};
        ASSERT_EQ(device.api().encoder.pool_slices(device.stream(), args), 0);
        const std::vector<float> got = Download(device, args.out, size, dtype);
        for (size_t at = 0; at < size; ++at) {
          const SliceRows& slice = problem.slices[at / width];
          double sum = 0, top = -INFINITY;
          for (int row = slice.row0; row < slice.row0 + slice.rows; ++row) {
            if (problem.visible[row] == 0) continue;
            sum += x.values[row * width + at % width];
            top = std::max<double>(top, x.values[row * width + at % width]);
          }
          double expected = largest == 1 ? top : sum / std::max(slice.visible, 1);
          if (slice.visible == 0) expected = 0;
          ASSERT_NEAR(got[at], expected, 4e-6 + Rounding(dtype) * std::abs(expected))
              << largest << " " << at;
        }
      }
    });
  }
}

TEST(DeviceEncoderTest, PlacesMixThroughTwoLinears) {
  constexpr int kMixed = 9, kPlaces = SliceProblem::kPlaces;
  const std::vector<float> in = Random(kPlaces * kMixed, 2), in_bias = Random(kMixed, 3);
  const std::vector<float> out = Random(kMixed * kPlaces, 4), out_bias = Random(kPlaces, 5);
  for (const int width : {1, 70}) {
    const SliceProblem problem(width);
    OnAll([&](TestDevice& device, DType dtype) {
      const Elements x(Random(20 * width, 1), dtype);
      const size_t size = 20 * static_cast<size_t>(width);
      void* const rows = x.Upload(device);
      const auto count = static_cast<int32_t>(problem.slices.size());
      // In place: rows of no slice stay as they are.
      const MixSlices args = {rows,
                              device.Upload(problem.visible),
                              device.Upload(problem.slices),
                              count,
                              width,
                              kPlaces,
                              kMixed,
                              {device.Upload(in), device.Upload(in_bias)},
                              {device.Upload(out), device.Upload(out_bias)},
                              device.Allocate<float>(static_cast<size_t>(count) * kMixed * width),
                              rows,
                              dtype};
      ASSERT_EQ(device.api().encoder.mix_in(device.stream(), args), 0);
      ASSERT_EQ(device.api().encoder.mix_out(device.stream(), args), 0);
      const std::vector<float> got = Download(device, rows, size, dtype);
      std::vector<double> expected(x.values.begin(), x.values.end());
      for (const SliceRows& slice : problem.slices) {
        for (int c = 0; c < width; ++c) {
          std::vector<double> mixed(kMixed);
          for (int k = 0; k < kMixed; ++k) {
            double sum = in_bias[k];
            for (int j = 0; j < slice.rows; ++j) {
              if (problem.visible[slice.row0 + j] == 0) continue;
              sum += double{in[j * kMixed + k]} * x.values[(slice.row0 + j) * width + c];
            }
            mixed[k] = 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0)));
          }
          for (int i = 0; i < slice.rows; ++i) {
            double& to = expected[(slice.row0 + i) * width + c];
            to = out_bias[i];
            for (int k = 0; k < kMixed; ++k) to += out[k * kPlaces + i] * mixed[k];
          }
        }
      }
      for (size_t i = 0; i < size; ++i) {
        ASSERT_NEAR(got[i], expected[i], 1e-5 + Rounding(dtype) * std::abs(expected[i])) << i;
      }
    });
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
