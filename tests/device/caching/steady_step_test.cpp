#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::DeviceCalls;
using test::kib;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

/// A training step. The forward pass allocates outputs that stay, the backward pass frees them, and
/// both use temporary buffers. A second stream also uses each fourth output.
class Step {
public:
    Step(Simulated& backend, CachingAllocator& allocator, unsigned seed)
        : backend_(backend), allocator_(allocator), user_(backend.stream()) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> log2(9, 24);
        for (int i = 0; i < 200; ++i) {
            sizes_.push_back(static_cast<std::size_t>(std::exp2(log2(random))));
        }
    }

    /// Runs the step and returns how often another stream used a block.
    unsigned run() {
        std::vector<void*> outputs;
        unsigned uses = 0;
        for (std::size_t i = 0; i + 1 < sizes_.size(); i += 2) {
            outputs.push_back(allocator_.allocate(sizes_[i]));
            void* const temporary = allocator_.allocate(sizes_[i + 1]);
            backend_.calls_back(
                nullptr, [] {}, "forward");
            allocator_.deallocate(temporary);
            if (i % 8 != 0) continue;
            allocator_.record_use(outputs.back(), user_);
            ++uses;
        }
        while (!outputs.empty()) {
            allocator_.deallocate(outputs.back());
            outputs.pop_back();
        }
        backend_.synchronize(nullptr);
        backend_.synchronize(user_);
        return uses;
    }

private:
    Simulated& backend_;
    CachingAllocator& allocator_;
    StreamHandle user_;
    std::vector<std::size_t> sizes_;
};

class SteadyStep : public ::testing::TestWithParam<Slabs> {};

TEST_P(SteadyStep, MakesNoDeviceCallsButOneEventForEachCrossStreamUse) {
    for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
        Simulated backend(unwatched(device_with(GetParam(), 4096 * mib)));
        CachingAllocator allocator(backend, 0);
        Step step(backend, allocator, seed);
        for (int i = 0; i < 3; ++i) (void)step.run();
        (void)DeviceCalls(backend);
        const unsigned uses = step.run();
        const DeviceCalls calls(backend);
        EXPECT_EQ(calls.memory, 0U) << seed;
        EXPECT_EQ(calls.maps, 0U) << seed;
        EXPECT_EQ(calls.released, 0U) << seed;
        EXPECT_EQ(calls.waits, 2U) << seed << ": those of the step itself";
        EXPECT_LE(calls.events, uses) << seed;
        EXPECT_EQ(allocator.statistics().synchronizations, 0U) << seed;
    }
}

/// Blocks are freed in random order, so that memory could be released and allocated in each step.
TEST_P(SteadyStep, BecomesSteadyForAnyOrderOfFrees) {
    for (const unsigned seed : {1U, 2U, 3U}) {
        SimulationOptions simulation = unwatched(device_with(GetParam(), 16384 * mib));
        simulation.fill_patterns = false;
        Simulated backend(simulation);
        CachingAllocator allocator(backend, 0);
        (void)DeviceCalls(backend);
        for (int step = 0; step < 40; ++step) {
            std::mt19937 random(seed);
            std::uniform_real_distribution<double> log2(9, 23);
            std::vector<void*> blocks;
            (void)DeviceCalls(backend);
            for (int call = 0; call < 400; ++call) {
                if (blocks.empty() || random() % 100 < 55) {
                    const auto bytes = static_cast<std::size_t>(std::exp2(log2(random)));
                    blocks.push_back(allocator.allocate(bytes));
                } else {
                    std::swap(blocks[random() % blocks.size()], blocks.back());
                    allocator.deallocate(blocks.back());
                    blocks.pop_back();
                }
            }
            for (void* block : blocks) allocator.deallocate(block);
        }
        const DeviceCalls last(backend);
        EXPECT_EQ(last.memory + last.maps + last.released, 0U) << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Slabs, SteadyStep, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

}  // namespace
}  // namespace tensorpool
