#pragma once

#include <array>
#include <random>
#include <vector>

#include "stress/exchange.hpp"
#include "stress/pools.hpp"

namespace tensorpool::stress {

/// What all threads of a round share.
struct Round {
    Pools pools;
    Exchange exchange;
    LiveMap* map = nullptr;  // where one is kept
};

/// What one thread does in its life. The blocks it holds at the end go to the next one.
class Worker {
public:
    /// `number` tells it from all other workers of the round.
    Worker(Round& round, std::uint64_t seed, std::uint64_t number)
        : round_(round), random_(seed * 0x9e3779b97f4a7c15U + number), next_mark_(number << 40) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    /// Adds to the pools' totals what it did.
    ~Worker();

    void work(unsigned calls, std::vector<HoldingPointer>& held);
    /// Allocates and frees a few sizes as fast as it can, as all other threads do meanwhile: where
    /// two can come to hold the same block, they must meet often.
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
