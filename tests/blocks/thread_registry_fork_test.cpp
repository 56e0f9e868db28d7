// Caches in processes that fork.

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/thread_registry.hpp"
#include "support/child_process.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::blocks {
namespace {

using testing::exit_code_of_child;
using testing::PoolParts;

constexpr unsigned bucket_1k = 4;

/// What the thread that forks does after the library's handlers, such as copying its statistics.
std::function<void()> last_before_fork;

// Before the library sets its handlers: the first ones are called last.
[[gnu::constructor(101)]] void set_first_handler() {
    pthread_atfork(
        [] {
            if (last_before_fork) last_before_fork();
        },
        nullptr, nullptr);
}

class Fork : public ::testing::Test {
protected:
    void use(unsigned pairs) {
        for (unsigned i = 0; i < pairs; ++i) {
            const unsigned bucket = i % detail::bucket_count;
            pool_.deallocate(bucket, pool_.allocate(bucket));
        }
    }

    PoolParts pool_;
};

/// Threads that keep parked blocks while the process forks.
class ParkingThreads {
public:
    ParkingThreads(PoolParts& pool, unsigned count) : parked_(count), done_(1) {
        for (unsigned i = 0; i < count; ++i) {
            threads_.emplace_back([&pool, this] {
                pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
                parked_.count_down();
                done_.wait();
            });
        }
        parked_.wait();
    }
    ~ParkingThreads() {
        done_.count_down();
        for (std::thread& thread : threads_) thread.join();
    }

private:
    std::latch parked_;
    std::latch done_;
    std::vector<std::thread> threads_;
};

TEST_F(Fork, ChildContinuesWithItsOwnCacheAndBlocks) {
    void* const block = pool_.allocate(bucket_1k);
    const std::size_t parked = pool_.parked_bytes();
    EXPECT_EQ(exit_code_of_child([&] {
                  if (pool_.in_use_bytes() != 1024 || pool_.parked_bytes() != parked) return 1;
                  if (thread_registry().attached(pool_.set) == nullptr) return 2;
                  if (pool_.totals.lost_bytes != 0) return 3;
                  pool_.deallocate(bucket_1k, block);
                  use(1000);
                  thread_registry().attached(pool_.set)->give_back_all(testing::PoolParts::path());
                  pool_.drain();
                  return pool_.held_bytes() == 0 && pool_.capacity_of(bucket_1k) == 0 ? 0 : 4;
              }),
              0);
    EXPECT_EQ(pool_.in_use_bytes(), 1024U);
    EXPECT_EQ(pool_.parked_bytes(), parked);
}

TEST_F(Fork, BlocksParkedByOtherThreadsAreLostInTheChildOnly) {
    use(1);
    const std::size_t own = pool_.parked_bytes();
    {
        const ParkingThreads threads(pool_, 3);
        const std::size_t parked = pool_.parked_bytes();
        ASSERT_GT(parked, own);
        EXPECT_EQ(exit_code_of_child([&] {
                      if (pool_.totals.lost_bytes != parked - own) return 1;
                      if (pool_.parked_bytes() != own || pool_.in_use_bytes() != 0) return 2;
                      if (pool_.counters.taken_count() != 1) return 3;
                      if (pool_.held_bytes() < own) return 4;
                      use(1000);
                      return pool_.in_use_bytes() == 0 ? 0 : 5;
                  }),
                  0);
        EXPECT_EQ(pool_.totals.lost_bytes, 0U);
        EXPECT_EQ(pool_.parked_bytes(), parked);
        EXPECT_EQ(pool_.counters.taken_count(), 4U);
    }
    EXPECT_EQ(pool_.parked_bytes(), own);
}

TEST_F(Fork, BlocksThatReachADepotDuringAForkAreNotLost) {
    const testing::ForcedShards forced(1);  // a depot for another shard would need the held locks
    PoolParts pool;
    std::binary_semaphore parked{0};
    std::binary_semaphore may_give{0};
    std::binary_semaphore given{0};
    std::binary_semaphore done{0};
    std::thread giver([&] {
        pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
        parked.release();
        may_give.acquire();
        thread_registry().attached(pool.set)->give_back_blocks(testing::PoolParts::path());
        given.release();
        done.acquire();
    });
    parked.acquire();
    const std::size_t bytes = pool.parked_bytes();
    EXPECT_GT(bytes, 0U);
    last_before_fork = [&] {
        may_give.release();
        given.acquire();
    };
    EXPECT_EQ(exit_code_of_child([&] {
                  if (pool.totals.lost_bytes != 0 || pool.held_bytes() != bytes) return 1;
                  pool.drain();
                  return pool.held_bytes() == 0 ? 0 : 2;
              }),
              0);
    last_before_fork = nullptr;
    done.release();
    giver.join();
}

TEST_F(Fork, BlocksThatOtherThreadsHoldAreStillInUseInTheChild) {
    void* block = nullptr;
    std::thread([&] { block = pool_.allocate(bucket_1k); }).join();
    EXPECT_EQ(exit_code_of_child([&] {
                  if (pool_.in_use_bytes() != 1024) return 1;
                  pool_.deallocate(bucket_1k, block);
                  return pool_.in_use_bytes() == 0 ? 0 : 2;
              }),
              0);
}

TEST_F(Fork, ChildOfAThreadWithoutACacheGetsOne) {
    std::thread([this] {
        EXPECT_EQ(exit_code_of_child([this] {
                      use(100);
                      return thread_registry().attached(pool_.set) != nullptr &&
                                     pool_.in_use_bytes() == 0
                                 ? 0
                                 : 1;
                  }),
                  0);
    }).join();
}

TEST_F(Fork, ChildMayForkAgain) {
    use(10);
    const ParkingThreads threads(pool_, 1);
    EXPECT_EQ(exit_code_of_child([this] {
                  use(10);
                  const std::uint64_t lost = pool_.totals.lost_bytes;
                  return exit_code_of_child([this, lost] {
                      use(10);
                      return pool_.totals.lost_bytes == lost && pool_.in_use_bytes() == 0 ? 0 : 1;
                  });
              }),
              0);
}

TEST_F(Fork, ChildMayDestroyPoolsThatOtherThreadsUsed) {
    auto pool = std::make_unique<PoolParts>();
    const ParkingThreads threads(*pool, 2);
    EXPECT_EQ(exit_code_of_child([&] {
                  const unsigned number = pool->set.number();
                  pool.reset();
                  PoolParts next;
                  if (next.set.number() != number) return 1;
                  next.deallocate(bucket_1k, next.allocate(bucket_1k));
                  return next.in_use_bytes() == 0 ? 0 : 2;
              }),
              0);
}

void use_another_pool() {
    PoolParts pool;
    pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
}

/// Threads that hold one of the locks nearly all the time.
class BusyThreads {
public:
    explicit BusyThreads(PoolParts& pool) : pool_(pool) {
        threads_.emplace_back([this] { repeat([this] { go_direct(); }); });
        threads_.emplace_back([this] { repeat([this] { trim(); }); });
        threads_.emplace_back([this] { repeat([this] { live_shortly(); }); });
        threads_.emplace_back([this] { repeat(use_another_pool); });
    }
    ~BusyThreads() {
        done_ = true;
        for (std::thread& thread : threads_) thread.join();
    }

private:
    template <class Function>
    void repeat(Function function) {
        while (!done_) function();
    }
    void go_direct() {
        const std::vector<void*> blocks = pool_.allocate_direct(bucket_1k, 100);
        for (void* const block : blocks) {
            deallocate_direct(pool_.set, bucket_1k, block, PoolParts::path());
        }
    }
    void trim() {
        std::vector<void*> blocks(500);
        for (void*& block : blocks) block = pool_.allocate(bucket_1k);
        for (void* const block : blocks) pool_.deallocate(bucket_1k, block);
        thread_registry().attached(pool_.set)->give_back_all(testing::PoolParts::path());
        pool_.drain();
    }
    void live_shortly() {
        std::thread([this] { pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k)); }).join();
    }

    PoolParts& pool_;
    std::atomic<bool> done_ = false;
    std::vector<std::thread> threads_;
};

// Not under sanitizers: a fork while another thread is inside their malloc leaves the child with a
// lock that no thread releases.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Fork, ChildrenForkedWhileThreadsAllocateWork) {
    {
        const BusyThreads threads(pool_);
        for (unsigned i = 0; i < 100; ++i) {
            EXPECT_EQ(exit_code_of_child([&] {
                          if (pool_.counters.taken_count() != 0) return 1;
                          for (void* const block : pool_.allocate_direct(bucket_1k, 100)) {
                              pool_.deallocate(bucket_1k, block);
                          }
                          use(1000);
                          use_another_pool();
                          thread_registry().attached(pool_.set)->give_back_all(
                              testing::PoolParts::path());
                          pool_.drain();
                          // Whatever a thread was doing at the fork, the total did not become
                          // negative.
                          return pool_.held_bytes() < (std::size_t{64} << 20) ? 0 : 2;
                      }),
                      0);
        }
    }
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.totals.lost_bytes, 0U);
}
#endif

}  // namespace
}  // namespace tensorpool::blocks
