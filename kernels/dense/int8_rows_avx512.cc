// Row operations of int8 products for AVX-512, for kernels that multiply unsigned by signed bytes.
#include "kernels/dense/int8_product.h"
#include "kernels/dense/int8_rows_body.h"

namespace longview::kernels {

extern const Int8Kernels kInt8Avx512Rows = {"avx512",
                                            1,
                                            128,
                                            QuantizeRow<float, uint8_t, 128>,
                                            QuantizeRow<uint16_t, uint8_t, 128>,
                                            nullptr,
                                            DequantizeRow<float>,
                                            DequantizeRow<uint16_t>,
                                            nullptr};

}  // namespace longview::kernels
