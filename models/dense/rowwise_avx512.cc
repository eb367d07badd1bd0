#define LONGVIEW_ROWWISE_NAMESPACE avx512
#include "models/dense/rowwise_body.h"
