#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "support/counted_call_linux.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::testing {

/// Counts the locked operations of one thread's calls that access a cache line which the same calls
/// of a thread of another shard access too.
class SharedWords {
public:
    enum class Calls : bool { allocations, frees };

    /// Two threads, each of which keeps to a shard of its own, allocate and free so many blocks.
    SharedWords(unsigned shards, std::size_t bytes, std::size_t blocks, Calls which) {
        const ForcedShards forced(shards);
        // No period ends while calls are counted.
        MemoryPool pool({.retain = {.milliseconds = 1'000'000'000}});
        std::vector<CountedCall> found[2];
        std::barrier<> step(2);
        const auto run = [&](unsigned index) {
            ForcedShards::keep_to(index % shards);
            std::vector<void*> held(blocks);
            // First, both threads hold all their blocks at once, so that each shard has enough.
            for (int round = 0; round < 3; ++round) {
                for (void*& block : held) block = pool.allocate(bytes);
                step.arrive_and_wait();
                for (void* const block : held) pool.deallocate(block, bytes);
                step.arrive_and_wait();
            }
            for (unsigned turn = 0; turn != 2; ++turn) {
                if (turn == index) found[index] = count(pool, bytes, held, which);
                step.arrive_and_wait();
            }
        };
        std::thread other(run, 1U);
        std::thread(run, 0U).join();
        other.join();
        // While both threads prepare, a block of one shard may pass through the cache that all
        // threads share to a thread of the other. Its later calls access the words of both shards.
        for (auto& calls : found) {
            std::erase_if(calls, [](const CountedCall& call) { return call.locked == 0; });
        }
        std::map<std::uintptr_t, std::size_t> lines;
        for (const CountedCall& call : found[1]) {
            for_each_line(call, [&](std::uintptr_t line) { ++lines[line]; });
        }
        std::erase_if(lines, [&](const auto& line) { return 2 * line.second < found[1].size(); });
        std::vector<unsigned> shared;
        for (const CountedCall& call : found[0]) {
            unsigned count = 0;
            for_each_line(call, [&](std::uintptr_t line) { count += lines.contains(line); });
            shared.push_back(count);
            max_locked_ = std::max(max_locked_, call.locked);
        }
        std::ranges::sort(shared);
        if (!shared.empty()) usually_shared_ = shared[shared.size() / 2];
    }

    /// The locked operations of the first thread's calls, at most.
    unsigned max_locked() const { return max_locked_; }
    /// Of the calls that lock anything: the locked operations on lines that at least half of the
    /// other thread's calls lock too, in the median call of the first thread.
    unsigned usually_shared() const { return usually_shared_; }

private:
    static std::vector<CountedCall> count(MemoryPool& pool, std::size_t bytes,
                                          std::vector<void*>& held, Calls which) {
        std::vector<CountedCall> calls;
        for (void*& block : held) {
            if (which == Calls::allocations) {
                calls.push_back(count_call([&] { block = pool.allocate(bytes); }));
            } else {
                block = pool.allocate(bytes);
            }
        }
        for (void* const block : held) {
            if (which == Calls::frees) {
                calls.push_back(count_call([&] { pool.deallocate(block, bytes); }));
            } else {
                pool.deallocate(block, bytes);
            }
        }
        return calls;
    }
    template <class Function>
    static void for_each_line(const CountedCall& call, Function function) {
        constexpr std::uintptr_t line_bytes = 64;
        for (unsigned i = 0; i < std::min(call.locked, CountedCall::max_words); ++i) {
            if (call.words[i] != 0) function(call.words[i] / line_bytes);
        }
    }

    unsigned max_locked_ = 0;
    unsigned usually_shared_ = 0;
};

}  // namespace tensorpool::testing
