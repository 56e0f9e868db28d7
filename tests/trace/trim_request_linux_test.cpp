#include <tensorpool/trim_request.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include <tensorpool/live_trace.hpp>
#include <tensorpool/memory_pool.hpp>

#include "support/child_process.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::uint64_t own_number() {
    return static_cast<std::uint64_t>(::getpid());
}

void free_at_once(MemoryPool& pool, std::size_t bytes) {
    pool.deallocate(pool.allocate(bytes), bytes);
}

TEST(TrimRequest, IsAnsweredByTheNextSlowPathOfAnyPool) {
    MemoryPool pool;
    MemoryPool another;
    free_at_once(pool, 32 * mib);
    const std::size_t capacity = pool.get_total_capacity();
    const TrimRequest request = TrimRequest::ask(own_number());
    EXPECT_EQ(request.trimmed_bytes(), std::nullopt);
    EXPECT_EQ(pool.get_total_capacity(), capacity);
    free_at_once(another, mib);
    EXPECT_EQ(request.trimmed_bytes(), capacity);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

// The answering call may hold a lock that the callback takes.
TEST(TrimRequest, CallsNoEventCallback) {
    unsigned given_back = 0;
    MemoryPool pool(PoolOptions{.on_event = [&](const PoolEvent& event) {
        given_back += event.kind == PoolEvent::Kind::give_back ? 1 : 0;
    }});
    MemoryPool another;
    free_at_once(pool, 32 * mib);
    const TrimRequest request = TrimRequest::ask(own_number());
    free_at_once(another, mib);
    EXPECT_GE(request.trimmed_bytes(), 32 * mib);
    EXPECT_EQ(given_back, 0U);
    free_at_once(pool, 32 * mib);
    pool.trim();
    EXPECT_EQ(given_back, 1U) << "later events are reported";
}

TEST(TrimRequest, IsAnsweredOnce) {
    MemoryPool pool;
    free_at_once(pool, 32 * mib);
    const TrimRequest request = TrimRequest::ask(own_number());
    free_at_once(pool, mib);
    free_at_once(pool, 32 * mib);
    free_at_once(pool, mib);
    EXPECT_GE(pool.get_total_capacity(), 32 * mib);
}

TEST(TrimRequest, IsAnsweredTogetherWithAnotherOne) {
    MemoryPool pool;
    free_at_once(pool, 32 * mib);
    const TrimRequest first = TrimRequest::ask(own_number());
    const TrimRequest second = TrimRequest::ask(own_number());
    free_at_once(pool, mib);
    EXPECT_TRUE(first.trimmed_bytes() && second.trimmed_bytes());
}

TEST(TrimRequest, WakesTheBackgroundTrimmer) {
    MemoryPool pool(PoolOptions{.retain = {.milliseconds = 1, .background = BackgroundTrim::on}});
    MemoryPool kept;
    free_at_once(kept, 32 * mib);
    free_at_once(pool, mib);
    testing::wait_until("the trimmer has returned the memory",
                        [&] { return pool.get_total_capacity() == 0; });
    const TrimRequest request = TrimRequest::ask(own_number());
    testing::wait_until("the request is answered",
                        [&] { return request.trimmed_bytes().has_value(); });
    EXPECT_GE(request.trimmed_bytes(), 32 * mib);
    EXPECT_EQ(kept.get_total_capacity(), 0U);
}

TEST(TrimRequest, DoesNotAffectARecording) {
    MemoryPool pool;
    free_at_once(pool, mib);
    LiveTrace trace = LiveTrace::ask(own_number());
    free_at_once(pool, mib);
    const auto ignore = [](const TracePart&) {};
    trace.look(ignore);
    ASSERT_TRUE(trace.has_begun());
    const TrimRequest request = TrimRequest::ask(own_number());
    free_at_once(pool, mib);
    EXPECT_TRUE(request.trimmed_bytes());
    EXPECT_FALSE(trace.has_ended());
    EXPECT_GT(trace.look(ignore), 0U);
    trace.stop();
    free_at_once(pool, mib);
    EXPECT_TRUE(trace.has_ended());
}

TEST(TrimRequest, StartsNoRecording) {
    MemoryPool pool;
    free_at_once(pool, mib);
    (void)TrimRequest::ask(own_number());
    free_at_once(pool, mib);
    LiveTrace trace = LiveTrace::ask(own_number());
    trace.stop();
    free_at_once(pool, mib);
    trace.look([](const TracePart&) {});
    EXPECT_FALSE(trace.has_begun());
}

TEST(TrimRequest, ChildOfAForkDoesNotAnswer) {
    MemoryPool pool;
    free_at_once(pool, 32 * mib);
    const TrimRequest request = TrimRequest::ask(own_number());
    EXPECT_TRUE(testing::holds_in_child([&] {
        free_at_once(pool, mib);
        return !request.trimmed_bytes() && pool.get_total_capacity() >= 32 * mib;
    }));
    EXPECT_EQ(request.trimmed_bytes(), std::nullopt);
}

TEST(TrimRequest, IsRefusedWithoutAPool) {
    try {
        (void)TrimRequest::ask(own_number());
        FAIL();
    } catch (const AttachError& error) {
        EXPECT_EQ(error.failure(), AttachFailure::no_segment);
        EXPECT_NE(std::string(error.what()).find("it accepts no request to trim"),
                  std::string::npos);
    }
}

}  // namespace
}  // namespace tensorpool
