#define LONGVIEW_ROWWISE_NAMESPACE avx2
#include "models/dense/rowwise_body.h"
