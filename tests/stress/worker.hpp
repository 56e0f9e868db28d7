#pragma once

#include <array>
#include <random>
#include <vector>

#include "stress/exchange.hpp"
#include "stress/pools.hpp"

namespace tensorpool::stress {

/// The state shared by all threads of a round.
struct Round {
    Pools pools;
    Exchange exchange;
    LiveMap* map = nullptr;  // set with --map
};

/// The work of one thread. Blocks that it holds at the end go to the next thread.
class Worker {
public:
    /// `number` is unique among the workers of the round.
    Worker(Round& round, std::uint64_t seed, std::uint64_t number)
        : round_(round), random_(seed * 0x9e3779b97f4a7c15U + number), next_mark_(number << 40) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    /// Adds the worker's counts to the totals of the pools.
    ~Worker();

    void work(unsigned calls, std::vector<HoldingPointer>& held);
    /// Allocates and frees a few sizes as fast as possible, concurrently with all other threads. If
    /// two threads could get the same block, this makes it likely.
    void crowd(unsigned calls);
    /// Verifies a block and frees it.
    void deallocate(HoldingPointer holding);

private:
    void allocate(std::vector<HoldingPointer>& held);
    void reallocate(Holding& holding);
    void hand_over(std::vector<HoldingPointer>& held);
    void* call(PoolUnderStress& pool, Holding& wanted);
    void after_failure(unsigned pool, std::vector<HoldingPointer>& held);
    void verify(const Holding& holding) const;
    void begin(Holding& holding);
    void end(const Holding& holding) const;
    std::size_t size(std::size_t most);
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
    HoldingPointer take(std::vector<HoldingPointer>& held);

    Round& round_;
    std::mt19937_64 random_;
    std::uint64_t next_mark_;
    std::array<Totals, pool_count> totals_ = {};
};

}  // namespace tensorpool::stress
