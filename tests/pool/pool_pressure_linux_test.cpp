// When slow paths of pools ask holders because the system is short of memory.

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <thread>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

#include "support/bounded_wait.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

class CountingHolder : public MemoryHolder {
public:
    std::size_t available() const noexcept override {
        ++asked;
        return 0;
    }
    std::size_t give(std::size_t) noexcept override { return 0; }
    mutable std::atomic<int> asked = 0;
};

class PoolWithoutMemory : public ::testing::Test {
protected:
    void SetUp() override {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer ends a program to which the system gives no memory";
#endif
    }
};

bool leave_no_memory() {
    const rlimit nothing{.rlim_cur = 0, .rlim_max = 0};
    return setrlimit(RLIMIT_DATA, &nothing) == 0;
}

// A holder frees blocks while it holds a lock that `give` takes.
TEST_F(PoolWithoutMemory, FreesAskNoHolder) {
    for (const Checks checks : {Checks::off, Checks::basic, Checks::hardened}) {
        EXPECT_TRUE(testing::holds_in_child([checks] {
            MemoryPool pool({.retain = {.background = BackgroundTrim::off},
                             .checks = checks,
                             .quarantine_bytes = 0});
            void* small[1000];
            for (void*& block : small) block = pool.allocate(1000);
            void* large[100];
            for (void*& block : large) block = pool.allocate(mib);
            Budget budget("cache");
            CountingHolder holder;
            const HolderRegistration registration = budget.add_holder(holder);
            if (!leave_no_memory()) return false;
            for (void* block : small) pool.deallocate(block, 1000);
            for (void* block : large) pool.deallocate(block, mib);
            return holder.asked == 0;
        })) << static_cast<int>(checks);
    }
}

TEST_F(PoolWithoutMemory, AllocationsAskHolders) {
    EXPECT_TRUE(testing::holds_in_child([] {
        MemoryPool pool({.retain = {.background = BackgroundTrim::off}});
        Budget budget("cache");
        CountingHolder holder;
        const HolderRegistration registration = budget.add_holder(holder);
        if (!leave_no_memory()) return false;
        // Another slow path may have looked just now.
        return testing::yield_until([&] {
            pool.deallocate(pool.try_allocate(3 * mib), 3 * mib);
            return holder.asked != 0;
        });
    }));
}

}  // namespace
}  // namespace tensorpool
