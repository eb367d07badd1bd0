// Precompiled for the tests of server/ and client/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/cmake/precompiled/server.h"
