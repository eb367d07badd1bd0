// The variants that kernels are compiled in: from a padded head size or an element, known when a
// call is made, to a constant.
//
// Stateless functions: thread-safe.
#pragma once

#include <type_traits>

#include "kernels/cuda/base/element.h"

namespace longview::kernels::cuda {

inline constexpr int kPaddedDims[] = {32, 64, 96, 128};

template <int kD>
using HeadDim = std::integral_constant<int, kD>;

template <Element kElement>
using ElementType = std::integral_constant<Element, kElement>;

// Returns `f(HeadDim<padded_dim>())`. REQUIRES: one of kPaddedDims.
template <class F>
auto WithPaddedDim(int padded_dim, F&& f) {
  switch (padded_dim) {
    case 32:
      return f(HeadDim<32>());
    case 64:
      return f(HeadDim<64>());
    case 96:
      return f(HeadDim<96>());
    default:
      return f(HeadDim<128>());
  }
}

// Returns `f(ElementType<element>())`.
template <class F>
auto WithElement(Element element, F&& f) {
  switch (element) {
    case Element::kBFloat16:
      return f(ElementType<Element::kBFloat16>());
    case Element::kFloat16:
      return f(ElementType<Element::kFloat16>());
    default:
      return f(ElementType<Element::kFloat32>());
  }
}

}  // namespace longview::kernels::cuda
