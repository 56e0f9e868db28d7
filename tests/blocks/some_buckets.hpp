#pragma once

#include <gtest/gtest.h>

#include "base/block_sizes.hpp"

namespace tensorpool::testing {

/// Parameters for tests of what holds for every bucket: the smallest, one in the middle, and the
/// largest. The layouts of all buckets have tests of their own, in bucket_layout_test.cpp.
inline auto some_buckets() {
    return ::testing::Values(0U, detail::bucket_count / 2, detail::bucket_count - 1);
}

}  // namespace tensorpool::testing
