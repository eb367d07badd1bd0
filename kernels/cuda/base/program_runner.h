// Programs as the functions of the plugin's tables. A runner says how one program runs: on a device
// (program.cuh), or on the host in tests. It offers
//
//   Run<Program>(stream, args)    hands a program to the stream
//
// and RunTyped below makes one function of a program's element types.
#pragma once

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

// The element type of a call's tensors marked T.
template <typename Args>
DType TypeOf(const Args& args) {
  if constexpr (requires { args.dtype; }) {
    return args.dtype;
  } else {
    return args.rows.dtype;
  }
}

// The program of the call's element type.
template <class Runner, template <typename> typename Program>
Status RunTyped(Stream* stream, const typename Program<float>::Args& args) {
  switch (TypeOf(args)) {
    case DType::kBFloat16:
      return Runner::template Run<Program<BFloat16>>(stream, args);
    case DType::kFloat16:
      return Runner::template Run<Program<Float16>>(stream, args);
    default:
      return Runner::template Run<Program<float>>(stream, args);
  }
}

}  // namespace longview::kernels::cuda
