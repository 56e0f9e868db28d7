#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::kib;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

/// A model of the allocator's guarantees: blocks in use do not overlap, and the statistics match
/// them.
class Model {
public:
    void add(void* block, std::size_t usable, std::size_t requested) {
        const auto begin = reinterpret_cast<std::uintptr_t>(block);
        ASSERT_EQ(begin % 256, 0U);
        ASSERT_GE(usable, requested);
        const auto next = blocks_.lower_bound(begin);
        if (next != blocks_.end()) {
            ASSERT_LE(begin + usable, next->first) << "overlaps";
        }
        if (next != blocks_.begin()) {
            ASSERT_LE(std::prev(next)->first + std::prev(next)->second.usable, begin) << "overlaps";
        }
        blocks_[begin] = {usable, requested};
        in_use_ += usable;
        requested_ += requested;
        peak_ = std::max(peak_, in_use_);
    }
    void remove(void* block) {
        const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(block));
        in_use_ -= found->second.usable;
        requested_ -= found->second.requested;
        blocks_.erase(found);
    }
    void agrees_with(const DeviceStatistics& now) const {
        EXPECT_EQ(now.in_use_bytes, in_use_);
        EXPECT_EQ(now.requested_in_use_bytes, requested_);
        EXPECT_EQ(now.allocations - now.deallocations, blocks_.size());
        EXPECT_GE(now.peak_in_use_bytes, peak_);
        EXPECT_EQ(now.capacity_bytes, now.in_use_bytes + now.deferred_bytes + now.free_bytes);
        EXPECT_LE(now.split_bytes + now.parked_bytes, now.free_bytes);
        EXPECT_EQ(now.capacity_bytes, now.grown_bytes - now.given_back_bytes);
    }
    std::size_t in_use() const { return in_use_; }

private:
    struct Sizes {
        std::size_t usable;
        std::size_t requested;
    };
    std::map<std::uintptr_t, Sizes> blocks_;
    std::size_t in_use_ = 0;
    std::size_t requested_ = 0;
    std::size_t peak_ = 0;
};

/// The slabs, and the seed of the calls.
class CachingStress : public ::testing::TestWithParam<std::tuple<Slabs, unsigned>> {
protected:
    static void run(Slabs slabs, unsigned seed, double hard_limit);
};

TEST_P(CachingStress, RandomCallsMatchModelWithoutHazards) {
    const auto [slabs, seed] = GetParam();
    run(slabs, seed, seed <= 4 ? 0 : 0.5);
}

void CachingStress::run(Slabs slabs, unsigned seed, double hard_limit) {
    SimulationOptions simulation = device_with(slabs, 512 * mib, Schedule::random);
    simulation.seed = seed;
    Simulated backend(simulation);
    CachingOptions options;
    options.hard_limit = hard_limit;
    options.soft_limit = hard_limit / 2;
    CachingAllocator allocator(backend, 0, options);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> log2(0, 26);
    std::vector<StreamHandle> streams = {nullptr, backend.stream(), backend.stream()};
    struct Held {
        void* block;
        StreamHandle stream;
        std::size_t bytes;
    };
    std::vector<Held> held;
    Model model;
    const auto free_one = [&](std::size_t at) {
        std::swap(held[at], held.back());
        model.remove(held.back().block);
        allocator.deallocate(held.back().block);
        held.pop_back();
    };
    for (int step = 0; step < 1000; ++step) {
        const StreamHandle stream = streams[random() % streams.size()];
        const auto what = random() % 100;
        if (what < 45) {
            const auto bytes = static_cast<std::size_t>(std::exp2(log2(random)));
            void* const block = allocator.try_allocate(bytes, stream);
            if (block == nullptr) continue;
            model.add(block, allocator.usable_size(block), bytes);
            backend.writes(stream, block, "first write", std::min<std::size_t>(bytes, 64));
            held.push_back({block, stream, bytes});
        } else if (what < 85 && !held.empty()) {
            free_one(random() % held.size());
        } else if (what < 95 && !held.empty()) {
            const Held& used = held[random() % held.size()];
            backend.orders(used.stream, stream);
            backend.reads(stream, used.block, "read", std::min<std::size_t>(used.bytes, 64));
            allocator.record_use(used.block, stream);
        } else if (what < 97) {
            backend.synchronize(stream);
        } else if (what < 98) {
            (void)allocator.trim();
        } else if (what < 99 && stream != nullptr) {
            std::erase_if(held, [&](const Held& one) {
                if (one.stream != stream) return false;
                model.remove(one.block);
                allocator.deallocate(one.block);
                return true;
            });
            allocator.end_stream(stream);
            EXPECT_EQ(backend.destroy_stream(0, stream), DeviceStatus::ok);
            *std::find(streams.begin(), streams.end(), stream) = backend.stream();
        }
        if (step % 16 == 0) model.agrees_with(allocator.statistics());
        if (HasFailure()) break;
    }
    while (!held.empty()) free_one(held.size() - 1);
    model.agrees_with(allocator.statistics());
    EXPECT_EQ(backend.synchronize_device(0), DeviceStatus::ok);
    (void)allocator.trim();
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
    EXPECT_EQ(allocator.statistics().free_blocks, 0U);
    EXPECT_EQ(backend.hazard_report(), "");
}

INSTANTIATE_TEST_SUITE_P(Slabs, CachingStress,
                         ::testing::Combine(::testing::Values(Slabs::plain, Slabs::expandable),
                                            ::testing::Range(1U, 9U)),
                         [](const auto& of) {
                             const bool is_plain = std::get<0>(of.param) == Slabs::plain;
                             return (is_plain ? "PlainSlabs" : "ExpandableSlabs") +
                                    std::to_string(std::get<1>(of.param));
                         });

class CachingThreads : public ::testing::TestWithParam<Slabs> {};

/// Each thread uses its own stream and a common one, and frees some blocks of the other threads.
TEST_P(CachingThreads, GetDistinctBlocksConcurrently) {
    constexpr unsigned thread_count = 4;
    Simulated backend(unwatched(device_with(GetParam(), 512 * mib, Schedule::eager)));
    CachingAllocator allocator(backend, 0);
    struct Held {
        unsigned char* block;
        std::size_t bytes;
        unsigned char mark;
    };
    std::mutex mutex;
    std::vector<Held> common;
    std::atomic<unsigned> damaged = 0;
    const auto release = [&](const Held& held) {
        // The bytes are real: another owner of the block would have written its own mark.
        if (held.block[0] != held.mark || held.block[held.bytes - 1] != held.mark) ++damaged;
        allocator.deallocate(held.block);
    };
    const auto work = [&](unsigned number) {
        std::mt19937 random(number);
        const StreamHandle own = backend.stream();
        std::vector<Held> mine;
        for (int step = 0; step < 4000; ++step) {
            const std::size_t bytes =
                random() % 10 == 0 ? 1 + random() % (4 * mib) : 1 + random() % 8192;
            const StreamHandle stream = random() % 4 == 0 ? nullptr : own;
            auto* const block = static_cast<unsigned char*>(allocator.try_allocate(bytes, stream));
            if (block == nullptr) continue;
            const auto mark = static_cast<unsigned char>(random());
            block[0] = block[bytes - 1] = mark;
            mine.push_back({block, bytes, mark});
            if (random() % 50 == 0) allocator.record_use(block, random() % 2 == 0 ? own : nullptr);
            if (random() % 8 == 0) {
                const std::lock_guard guard(mutex);
                common.push_back(mine.back());
                mine.pop_back();
                std::swap(common[random() % common.size()], common.back());
                mine.push_back(common.back());
                common.pop_back();
            }
            while (mine.size() > 30 || (!mine.empty() && random() % 2 == 0)) {
                std::swap(mine[random() % mine.size()], mine.back());
                release(mine.back());
                mine.pop_back();
            }
            if (random() % 1000 == 0) (void)allocator.trim();
            if (random() % 500 == 0) (void)allocator.statistics();
        }
        for (const Held& held : mine) release(held);
    };
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < thread_count; ++number) threads.emplace_back(work, number);
    for (std::thread& thread : threads) thread.join();
    for (const Held& held : common) release(held);
    EXPECT_EQ(damaged, 0U);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
    (void)allocator.trim();
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Slabs, CachingThreads, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

TEST(CachingThreads, WaitingForOneSlabAllocateNoSecond) {
    Simulated backend(unwatched(device_with(Slabs::plain, 512 * mib, Schedule::eager)));
    for (int round = 0; round < 50; ++round) {
        CachingAllocator allocator(backend, 0);
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back([&] { (void)allocator.allocate(4096); });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(allocator.statistics().slabs, 1U);
    }
}

}  // namespace
}  // namespace tensorpool
