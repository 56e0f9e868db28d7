// Requests that wait at the limit for copies that hold freed blocks back.

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <tensorpool/device/pinned_allocator.hpp>

#include "simulation/simulated_work.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

using namespace std::chrono_literals;
using Failure = DeviceAllocationFailure;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t limit = 8 * mib;
/// So long that a test that waits for its end fails.
constexpr std::chrono::nanoseconds endless = 24h;
/// Queries of an event that is not reached, after which the work before it is done; 0: never.
enum Patience : std::uint64_t { never = 0, three = 3 };

SimulationOptions lazy(Patience patience) {
    SimulationOptions options;
    options.schedule = Schedule::lazy;
    options.patience = patience;
    return options;
}

struct Limited {
    explicit Limited(Patience patience, std::chrono::nanoseconds wait = endless)
        : backend(lazy(patience)),
          allocator(backend, 0, {.name = "limited", .max_bytes = limit, .pinned_wait = wait}) {}

    /// Allocates a block, submits a copy of it and frees it.
    void copy_and_free(std::size_t bytes, StreamHandle stream) {
        void* const block = allocator.allocate(bytes, stream);
        backend.host_write(block, bytes);
        EXPECT_EQ(backend.copy_async(0, CopyKind::host_to_device, memory, block, bytes, stream),
                  DeviceStatus::ok);
        allocator.deallocate(block);
    }
    Failure failure_of(std::size_t bytes) {
        try {
            allocator.deallocate(allocator.allocate(bytes));
        } catch (const DeviceAllocationError& error) {
            text = error.what();
            return error.failure();
        }
        ADD_FAILURE() << "allocated " << bytes << " B";
        return {};
    }

    test::Device backend;
    PinnedAllocator allocator;
    StreamHandle stream = backend.stream();
    void* memory = backend.memory(2 * limit);
    std::string text;
};

TEST(PinnedWait, RequestAtTheLimitWaitsForTheCopyThatFreesEnough) {
    Limited limited(three);
    limited.copy_and_free(limit, limited.stream);
    void* const block = limited.allocator.allocate(limit);
    EXPECT_EQ(limited.allocator.statistics().deferred_bytes, 0U);
    EXPECT_EQ(limited.allocator.statistics().failures, 0U);
    limited.allocator.deallocate(block);
}

TEST(PinnedWait, TryAllocateWaitsToo) {
    Limited limited(three);
    limited.copy_and_free(limit, limited.stream);
    void* const block = limited.allocator.try_allocate(5 * mib);
    EXPECT_NE(block, nullptr);
    limited.allocator.deallocate(block);
}

TEST(PinnedWait, WaitOf0RefusesAtOnce) {
    Limited limited(never, 0ns);
    limited.copy_and_free(limit, limited.stream);
    EXPECT_EQ(limited.allocator.try_allocate(limit), nullptr);
    const Failure failure = limited.failure_of(limit);
    EXPECT_EQ(failure.cause, Failure::Cause::held_back);
    EXPECT_EQ(failure.waited_ns, 0U);
    EXPECT_EQ(limited.text.find("waited"), std::string::npos) << limited.text;
}

TEST(PinnedWait, RefusalSaysHowLongItWaitedAndForWhat) {
    Limited limited(never, 1ns);
    limited.copy_and_free(limit, limited.stream);
    const Failure failure = limited.failure_of(limit);
    EXPECT_EQ(failure.cause, Failure::Cause::held_back);
    EXPECT_GT(failure.waited_ns, 0U);
    ASSERT_EQ(failure.holder_count, 1U);
    EXPECT_EQ(failure.holders[0].stream, limited.stream);
    EXPECT_NE(limited.text.find("\n  freed but held back 8 MiB by stream "), std::string::npos)
        << limited.text;
    EXPECT_NE(limited.text.find(" ms for copies that hold freed blocks back\n"), std::string::npos)
        << limited.text;
}

TEST(PinnedWait, OtherThreadsAllocateAndFreeDuringTheWait) {
    Limited limited(never);
    limited.copy_and_free(4 * mib, limited.stream);
    limited.copy_and_free(4 * mib, limited.stream);
    const auto queries = [&] { return limited.backend.calls()[SimulatedCall::query_event]; };
    const std::uint64_t before = queries();
    void* block = nullptr;
    std::thread waiting([&] { block = limited.allocator.allocate(limit); });
    // The first query precedes the wait.
    testing::wait_until("the other thread waits", [&] { return queries() >= before + 3; });
    const StreamHandle other = limited.backend.stream();
    EXPECT_EQ(limited.allocator.trim(), 0U);
    limited.allocator.end_stream(other);
    EXPECT_EQ(limited.backend.synchronize_stream(0, limited.stream), DeviceStatus::ok);
    waiting.join();
    EXPECT_NE(block, nullptr);
    limited.allocator.deallocate(block);
}

TEST(PinnedWait, EndsWhenAnotherThreadTakesWhatTheCopyFreed) {
    Limited limited(never);
    const StreamHandle other = limited.backend.stream();
    limited.copy_and_free(4 * mib, limited.stream);
    limited.copy_and_free(4 * mib, other);
    const auto queries = [&] { return limited.backend.calls()[SimulatedCall::query_event]; };
    const std::uint64_t before = queries();
    Failure failure;
    std::thread waiting([&] { failure = limited.failure_of(limit); });
    testing::wait_until("the other thread waits", [&] { return queries() >= before + 5; });
    EXPECT_EQ(limited.backend.synchronize_stream(0, limited.stream), DeviceStatus::ok);
    void* const half = limited.allocator.allocate(4 * mib);
    waiting.join();
    EXPECT_GT(failure.waited_ns, 0U);
    EXPECT_EQ(failure.held_back, 4 * mib);
    limited.allocator.deallocate(half);
    EXPECT_EQ(limited.backend.synchronize_device(0), DeviceStatus::ok);
}

TEST(PinnedWait, NeverWaitsForWorkOfACapture) {
    Limited limited(never);
    void* const block = limited.allocator.allocate(limit, limited.stream);
    EXPECT_EQ(limited.backend.begin_capture(0, limited.stream), DeviceStatus::ok);
    limited.allocator.deallocate(block);
    EXPECT_EQ(limited.failure_of(limit).waited_ns, 0U);
    GraphHandle graph = nullptr;
    EXPECT_EQ(limited.backend.end_capture(0, limited.stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(limited.backend.destroy_graph(0, graph), DeviceStatus::ok);
    limited.allocator.deallocate(limited.allocator.allocate(limit));
}

TEST(PinnedWait, NeverWaitsForACopyOfABlockThatAlsoWaitsForACapture) {
    Limited limited(never);
    const StreamHandle other = limited.backend.stream();
    void* const block = limited.allocator.allocate(limit, limited.stream);
    limited.allocator.record_use(block, other);
    limited.backend.reads(other, block, "copy");
    EXPECT_EQ(limited.backend.begin_capture(0, limited.stream), DeviceStatus::ok);
    limited.allocator.deallocate(block);
    EXPECT_EQ(limited.failure_of(limit).waited_ns, 0U);
    GraphHandle graph = nullptr;
    EXPECT_EQ(limited.backend.end_capture(0, limited.stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(limited.backend.destroy_graph(0, graph), DeviceStatus::ok);
    EXPECT_EQ(limited.backend.synchronize_device(0), DeviceStatus::ok);
}

TEST(PinnedWait, DoesNotWaitForCopiesThatFreeTooLittle) {
    Limited limited(never);
    void* const used = limited.allocator.allocate(4 * mib);
    limited.copy_and_free(4 * mib, limited.stream);
    const Failure failure = limited.failure_of(6 * mib);
    EXPECT_EQ(failure.cause, Failure::Cause::limit);
    EXPECT_EQ(failure.waited_ns, 0U);
    limited.allocator.deallocate(used);
    EXPECT_EQ(limited.backend.synchronize_device(0), DeviceStatus::ok);
}

TEST(PinnedWait, NegativeWaitIsRejected) {
    try {
        const Limited limited(never, -5ns);
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: pinned allocator 'limited': pinned_wait is -5 ns; expected 0 or "
                     "more");
    }
}

TEST(PinnedLimit, RaisedLimitAllowsGrowth) {
    Limited limited(never, 0ns);
    void* const first = limited.allocator.allocate(limit);
    EXPECT_EQ(limited.allocator.try_allocate(limit), nullptr);
    limited.allocator.set_limit(2 * limit);
    EXPECT_EQ(limited.allocator.statistics().limit_bytes, 2 * limit);
    void* const second = limited.allocator.allocate(limit);
    EXPECT_EQ(limited.allocator.try_allocate(limit), nullptr);
    limited.allocator.set_limit(0);
    void* const third = limited.allocator.allocate(limit);
    for (void* const block : {first, second, third}) limited.allocator.deallocate(block);
}

TEST(PinnedLimit, LoweredLimitGivesFreeMemoryBackAndRefusesGrowth) {
    Limited limited(never, 0ns);
    void* const used = limited.allocator.allocate(4 * mib);
    limited.allocator.deallocate(limited.allocator.allocate(3 * mib));
    limited.allocator.set_limit(2 * mib);
    EXPECT_EQ(limited.allocator.statistics().capacity_bytes, 4 * mib);
    EXPECT_EQ(limited.failure_of(2 * mib).limit, 2 * mib);
    limited.allocator.deallocate(used);
    EXPECT_EQ(limited.failure_of(5 * mib).limit, 2 * mib);
    EXPECT_EQ(limited.allocator.statistics().capacity_bytes, 0U);
    void* const block = limited.allocator.allocate(2 * mib);
    EXPECT_EQ(limited.allocator.statistics().capacity_bytes, 2 * mib);
    limited.allocator.deallocate(block);
}

}  // namespace
}  // namespace tensorpool
