#define LONGVIEW_ROWWISE_NAMESPACE baseline
#include "models/dense/rowwise_body.h"
