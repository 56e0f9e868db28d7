#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <tensorpool/planned_arena.hpp>

namespace tensorpool::stress {

/// A block in which every word holds the block's number.
struct HeldBlock {
    std::uint64_t* words = nullptr;
    std::size_t count = 0;
    std::uint64_t number = 0;

    void fill() const noexcept;
    /// Throws std::runtime_error that names the block if it was overwritten.
    void verify() const;
};

/// Threads that take blocks of an arena, hold them for a while, and free them.
class Hands {
public:
    /// With `plant`, they write to blocks that they have freed. The arena must keep its plan then.
    Hands(PlannedArena& arena, unsigned threads, bool plant);
    ~Hands();
    Hands(const Hands&) = delete;
    Hands& operator=(const Hands&) = delete;

    void take(const HeldBlock& block);
    /// Waits until all but `kept` blocks are freed.
    void wait_for(std::size_t kept);
    /// Throws the first problem found.
    void rethrow();

private:
    void work();
    bool free_one();
    void free(const HeldBlock& block);

    PlannedArena& arena_;
    bool plant_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<HeldBlock> held_;
    std::size_t unfreed_ = 0;
    std::exception_ptr problem_;
    bool ends_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tensorpool::stress
