// The calls of each class wait while another thread holds the lock, as it does during a fork.

#include <gtest/gtest.h>

#include <memory>

#include <tensorpool/memory_pool.hpp>

#include "blocks/thread_registry.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/pool.hpp"
#include "support/waits_for_lock_linux.hpp"

namespace tensorpool {
namespace {

using testing::waits_for;

class PoolLocks : public ::testing::Test {
protected:
    void SetUp() override {
        if (!testing::can_see_waits()) GTEST_SKIP() << "/proc does not show what threads wait for";
        allow_background_trimmer(false);
    }
};

TEST_F(PoolLocks, CallsOfThePoolListWait) {
    detail::PoolList& list = detail::pool_list();
    std::unique_ptr<MemoryPool> pool;
    EXPECT_TRUE(waits_for(list, [&] { pool = std::make_unique<MemoryPool>(); }));
    ASSERT_NE(pool, nullptr);
    EXPECT_TRUE(waits_for(list, [&] { list.visit([](detail::Pool&) {}); }));
    EXPECT_TRUE(waits_for(list, [&] { pool.reset(); }));
}

TEST_F(PoolLocks, SetUpOfTheGlobalPoolWaits) {
    std::mutex& mutex = blocks::thread_registry().set_up_mutex();
    detail::Pool* pool = nullptr;
    EXPECT_TRUE(waits_for(mutex, [&] { pool = detail::GlobalPool::set_up(); }));
    EXPECT_EQ(pool, detail::GlobalPool::set_up());
}

TEST_F(PoolLocks, PassesOfTheTrimmerWaitForAFork) {
    detail::BackgroundTrimmer& trimmer = detail::background_trimmer();
    const MemoryPool pool(PoolOptions{.retain = {.background = BackgroundTrim::on}});
    EXPECT_TRUE(waits_for(trimmer, [&] { trimmer.look(0); }));
}

}  // namespace
}  // namespace tensorpool
