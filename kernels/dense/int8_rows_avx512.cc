// Row operations of int8 products for AVX-512, for kernels that multiply unsigned by signed bytes.
#include "kernels/dense/int8_product.h"
#include "kernels/dense/int8_rows_body.h"

namespace longview::kernels {

extern const Int8Kernels kInt8Avx512Rows = MakeInt8Kernels<uint8_t, 128>("avx512", nullptr);

}  // namespace longview::kernels
