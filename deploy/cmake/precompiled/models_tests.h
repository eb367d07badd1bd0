// Precompiled for the tests of kernels/ and models/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "deploy/cmake/precompiled/models.h"
