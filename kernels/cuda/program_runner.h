// Programs as the functions of the plugin's tables. A runner says how one program runs: on a device
// (program.cuh), or on the host in tests. It offers
//
//   Run<Program>(stream, args)    hands a program to the stream
//
// and Typed below makes one function of a program's two element types.
#pragma once

#include "kernels/cuda/plugin_types.h"
#include "kernels/cuda/typed_element.h"
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

// The program of T = float or bfloat16.
template <class Runner, template <typename> typename Program>
Status RunTyped(Stream* stream, const typename Program<float>::Args& args) {
  return TypeOf(args) == DType::kFloat32 ? Runner::template Run<Program<float>>(stream, args)
                                         : Runner::template Run<Program<BFloat16>>(stream, args);
}

}  // namespace longview::kernels::cuda
