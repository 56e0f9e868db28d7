// Calls on a pool that was destroyed stop the program with a report in words, without checks
// and with them, as long as the memory of the MemoryPool object was not reused.

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>

#include <tensorpool/pooled_allocation.hpp>

#include "misuse/misuse.hpp"

namespace tensorpool {
namespace {

using testing::by_abort;

constexpr std::size_t kib = 1024;

/// A pool in memory that stays when it ends.
class ShortLivedPool {
public:
    explicit ShortLivedPool(Checks checks)
        : pool_(new (memory_) MemoryPool({.name = "mine", .checks = checks})) {}
    MemoryPool& operator*() noexcept { return *pool_; }
    void end() { std::destroy_at(pool_); }

private:
    alignas(MemoryPool) static inline std::byte memory_[sizeof(MemoryPool)];
    MemoryPool* pool_;
};

class EndedPoolMisuseDeathTest : public ::testing::TestWithParam<Checks> {
    void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
        GTEST_SKIP() << "the sanitizer reports these calls first";
#endif
    }
};

INSTANTIATE_TEST_SUITE_P(Levels, EndedPoolMisuseDeathTest,
                         ::testing::Values(Checks::off, Checks::full, Checks::hardened));

const char* const report =
    "^tensorpool: fatal: outlived-owner ptr=0x[0-9a-f]+ size=- requested=- pool=- thread=[0-9]+\n"
    "  a call on a pool that was destroyed before, for the block .*; expected the pool to outlive "
    "its blocks and handles\n";

TEST_P(EndedPoolMisuseDeathTest, HandleThatOutlivesItsPoolIsReportedInWords) {
    const bool finds_leaks = GetParam() == Checks::full || GetParam() == Checks::hardened;
    for (const std::size_t bytes : {std::size_t{100}, 300 * kib}) {
        const auto outlive = [bytes] {
            ShortLivedPool pool(GetParam());
            const PooledAllocation handle(*pool, bytes);
            pool.end();
        };
        EXPECT_EXIT(outlive(), by_abort(),
                    finds_leaks ? "^tensorpool: fatal: leak ptr=0x0 " : report);
    }
}

TEST_P(EndedPoolMisuseDeathTest, LaterCallsAreReportedInWords) {
    const auto call = [](auto misuse) {
        ShortLivedPool pool(GetParam());
        void* const block = (*pool).allocate(100);
        (*pool).deallocate(block, 100);
        pool.end();
        misuse(*pool, block);
    };
    EXPECT_EXIT(call([](MemoryPool& pool, void* p) { pool.deallocate(p); }), by_abort(), report);
    EXPECT_EXIT(call([](MemoryPool& pool, void* p) { pool.deallocate(p, 100); }), by_abort(),
                report);
    EXPECT_EXIT(call([](MemoryPool& pool, void* p) { pool.deallocate(p, 100, 4096); }), by_abort(),
                report);
    EXPECT_EXIT(call([](MemoryPool& pool, void* p) { (void)pool.reallocate(p, 100, 1000); }),
                by_abort(), report);
    EXPECT_EXIT(call([](MemoryPool& pool, void*) { (void)pool.allocate(100); }), by_abort(),
                report);
    EXPECT_EXIT(call([](MemoryPool& pool, void*) { (void)pool.try_allocate(300 * kib); }),
                by_abort(), report);
}

}  // namespace
}  // namespace tensorpool
