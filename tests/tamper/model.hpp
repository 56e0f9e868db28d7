#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::tamper {

/// How a run ended. The model found the last four.
enum class Outcome : int { harmless = 0, refused = 10, lost, outside, twice };

/// The blocks in use of a pool whose records are damaged: it trusts nothing that the pool returns.
/// Ends the process with an Outcome at the first disagreement. Its own memory is not the pool's.
class Model {
public:
    Model(MemoryPool& pool, std::uint64_t seed) : pool_(pool), random_(seed) {}

    /// Makes random calls.
    void run(unsigned steps);
    /// Checks and frees everything.
    void finish();

private:
    struct Block {
        std::size_t bytes;
        unsigned char mark;
    };
    using Blocks = std::map<std::uintptr_t, Block>;

    std::size_t number_below(std::size_t limit) { return random_() % limit; }
    std::size_t size();
    Blocks::iterator any() { return std::next(blocks_.begin(), number_below(blocks_.size())); }
    void step();
    void allocate();
    void reallocate();
    void free_any();
    /// Ends the process unless the new block lies in the pool's addresses and overlaps no other.
    void add(void* p, std::size_t bytes);
    static void check(std::uintptr_t at, const Block& block);
    [[noreturn]] static void end(Outcome outcome);

    MemoryPool& pool_;
    std::mt19937_64 random_;
    Blocks blocks_;
};

}  // namespace tensorpool::tamper
