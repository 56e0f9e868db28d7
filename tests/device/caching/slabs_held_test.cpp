#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include "device/caching/caching_device.hpp"
#include "device/caching/pytorch_rules.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::kib;
using test::mib;
using test::PyTorchRules;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

constexpr unsigned seed = 6;
constexpr std::size_t steps = 10'000;
constexpr std::size_t max_alive = 4608 * mib;

/// Each step first frees random blocks until at most `max_alive` bytes are in use, and then
/// allocates a block whose size has a uniform logarithm. Returns the peak of the bytes in use.
template <class Allocate, class Free>
std::size_t run(Allocate allocate, Free free) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> log2(10, 28);  // 1 KiB to 256 MiB
    std::vector<std::pair<decltype(allocate(1)), std::size_t>> blocks;
    std::size_t alive = 0;
    std::size_t peak = 0;
    for (std::size_t step = 0; step < steps; ++step) {
        const auto bytes = static_cast<std::size_t>(std::exp2(log2(random)));
        while (alive + bytes > max_alive) {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            free(blocks.back().first);
            alive -= blocks.back().second;
            blocks.pop_back();
        }
        blocks.emplace_back(allocate(bytes), bytes);
        alive += bytes;
        peak = std::max(peak, alive);
    }
    for (const auto& [block, bytes] : blocks) free(block);
    return peak;
}

/// Ignores the content of memory, which the simulation would copy as memory moves.
struct Addresses : Simulated {
    using Simulated::Simulated;
    DeviceStatus map_memory(int, void*, std::size_t, MemoryHandle) noexcept override {
        ++maps;
        return DeviceStatus::ok;
    }
    DeviceStatus unmap_memory(int, void*, std::size_t) noexcept override {
        return DeviceStatus::ok;
    }
    std::uint64_t maps = 0;
};

struct Held {
    double ratio = 0;  // peak of the bytes in slabs to the peak of the bytes in use
    std::size_t peak_alive = 0;
    DeviceStatistics statistics = {};
    std::uint64_t maps = 0;
};

Held held_by(Slabs slabs, bool keep_near_peak) {
    SimulationOptions options = unwatched(device_with(slabs, 16384 * mib, Schedule::eager));
    options.fill_patterns = false;
    Addresses backend(options);
    CachingOptions caching;
    caching.keep_near_peak = keep_near_peak;
    CachingAllocator allocator(backend, 0, caching);
    Held held;
    held.peak_alive = run([&](std::size_t bytes) { return allocator.allocate(bytes); },
                          [&](void* block) { allocator.deallocate(block); });
    held.statistics = allocator.statistics();
    held.maps = backend.maps;
    held.ratio = static_cast<double>(held.statistics.peak_capacity_bytes) /
                 static_cast<double>(held.peak_alive);
    return held;
}

double held_by_pytorch() {
    PyTorchRules rules;
    const std::size_t peak = run([&](std::size_t bytes) { return rules.allocate(bytes); },
                                 [&](PyTorchRules::Address block) { rules.deallocate(block); });
    return static_cast<double>(rules.held()) / static_cast<double>(peak);
}

TEST(SlabsHeld, ExceedPeakBytesInUseOnlySlightlyOnRequest) {
    const Held expandable = held_by(Slabs::expandable, true);
    const Held plain = held_by(Slabs::plain, true);
    const Held expandable_by_default = held_by(Slabs::expandable, false);
    const Held plain_by_default = held_by(Slabs::plain, false);
    const double pytorch = held_by_pytorch();
    for (const Held* held : {&expandable, &plain, &expandable_by_default, &plain_by_default}) {
        std::printf(
            "held %.3f of %zu MiB alive; grew %llu times, gave back %llu times, mapped "
            "%llu granules\n",
            held->ratio, held->peak_alive / mib,
            static_cast<unsigned long long>(held->statistics.growths),
            static_cast<unsigned long long>(held->statistics.give_backs),
            static_cast<unsigned long long>(held->maps));
    }
    std::printf("held by PyTorch's rules: %.3f\n", pytorch);
    EXPECT_GE(plain.peak_alive, std::size_t{4} << 30);
    EXPECT_LE(expandable.ratio, 1.15);
    EXPECT_LE(plain.ratio, 1.4);
    EXPECT_LE(plain.ratio, pytorch);
    EXPECT_LE(expandable_by_default.ratio, pytorch);
    EXPECT_EQ(plain_by_default.statistics.give_backs, 0U) << "nothing is given back before need";
    EXPECT_EQ(expandable_by_default.statistics.give_backs, 0U);
}

}  // namespace
}  // namespace tensorpool
