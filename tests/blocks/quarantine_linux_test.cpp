#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "blocks/bucket_set.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool::blocks {
namespace {

TEST(QuarantineMemory, IsReturnedAtTheEnd) {
    if (testing::sanitized()) GTEST_SKIP() << "the sanitizer's memory grows";
    const auto use = [] {
        std::atomic<std::uint64_t> published = 0;
        Quarantine quarantine;
        quarantine.limit(1600, published);
        Quarantine::Block taken[1];
        EXPECT_EQ(quarantine.exchange({&published, 100}, taken, 1), 0U);
    };
    use();
    const std::size_t before = testing::memory_metrics().address_space;
    for (int i = 0; i < 20; ++i) use();
    EXPECT_LT(testing::memory_metrics().address_space, before + (std::size_t{1} << 20));
}

}  // namespace
}  // namespace tensorpool::blocks
