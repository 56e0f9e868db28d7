#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/timeline.hpp>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;
using Kind = AllocatorEvent::Kind;

class Callbacks : public ::testing::Test {
protected:
    Callbacks() : backend(unwatched(device_with(Slabs::plain, 256 * mib))) {}

    Simulated backend;
};

TEST_F(Callbacks, ReceiveEachCallInOrder) {
    CachingAllocator allocator(backend, 0);
    std::vector<Kind> kinds;
    std::vector<void*> addresses;
    allocator.add_callback("all", [&](const AllocatorEvent& event) {
        kinds.push_back(event.kind);
        addresses.push_back(event.address);
        EXPECT_EQ(event.device, allocator.device());
    });
    void* const block = allocator.allocate(100 * mib);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.allocate(100 * mib), block);
    allocator.deallocate(block);
    (void)allocator.trim();
    backend.set_other_process_bytes(0, 200 * mib);
    EXPECT_EQ(allocator.try_allocate(100 * mib), nullptr);
    const std::vector<Kind> expected = {Kind::allocated, Kind::freed,    Kind::recycled,
                                        Kind::freed,     Kind::released, Kind::allocation_failed};
    EXPECT_EQ(kinds, expected);
    EXPECT_EQ(addresses, (std::vector<void*>{block, block, block, block, block, nullptr}));
    EXPECT_TRUE(allocator.remove_callback("all"));
    EXPECT_FALSE(allocator.remove_callback("all"));
    allocator.deallocate(allocator.allocate(100));
    EXPECT_EQ(kinds.size(), expected.size());
}

TEST_F(Callbacks, MayUseTheAllocatorThemselves) {
    CachingAllocator allocator(backend, 0);
    int depth = 0;
    int calls = 0;
    allocator.add_callback("one", [&](const AllocatorEvent&) {
        ++calls;
        if (depth != 0) return;
        ++depth;
        allocator.deallocate(allocator.allocate(4096));
        (void)allocator.trim();
        --depth;
    });
    allocator.deallocate(allocator.allocate(4096));
    EXPECT_GT(calls, 2);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
}

TEST_F(Callbacks, MayBeRemovedWhileTheyAreCalled) {
    CachingAllocator allocator(backend, 0);
    int calls = 0;
    allocator.add_callback("one", [&](const AllocatorEvent&) {
        ++calls;
        (void)allocator.remove_callback("one");
    });
    allocator.deallocate(allocator.allocate(4096));
    EXPECT_EQ(calls, 1);
}

TEST_F(Callbacks, MayOwnABlockThatIsFreedWithThem) {
    CachingAllocator allocator(backend, 0);
    std::shared_ptr<void> block(allocator.allocate(4096),
                                [&](void* held) { allocator.deallocate(held); });
    allocator.add_callback("owner", [block](const AllocatorEvent&) {});
    block.reset();
    EXPECT_TRUE(allocator.remove_callback("owner"));
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
}

TEST_F(Callbacks, MayAllocateWhileMemoryIsReleasedForAGrowth) {
    CachingOptions options;
    options.soft_limit = 0.25;
    CachingAllocator allocator(backend, 0, options);
    void* taken = nullptr;
    allocator.add_callback("one", [&](const AllocatorEvent& event) {
        const bool first = event.kind == Kind::released && taken == nullptr;
        if (first) taken = allocator.allocate(40 * mib);
    });
    void* const one = allocator.allocate(32 * mib);
    void* const other = allocator.allocate(32 * mib);
    allocator.deallocate(one);
    allocator.deallocate(other);
    void* const block = allocator.allocate(40 * mib);
    EXPECT_NE(taken, nullptr);
    EXPECT_NE(taken, block);
    allocator.deallocate(block);
    allocator.deallocate(taken);
}

TEST_F(Callbacks, AreAllCalled) {
    CachingAllocator allocator(backend, 0);
    int first = 0;
    int second = 0;
    allocator.add_callback("first", [&](const AllocatorEvent&) { ++first; });
    allocator.add_callback("second", [&](const AllocatorEvent&) { ++second; });
    void* const block = allocator.allocate(512);
    EXPECT_TRUE(allocator.remove_callback("first"));
    allocator.deallocate(block);
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 2);
}

TEST_F(Callbacks, AreRejectedWithoutANameOfTheirOwnOrAFunction) {
    CachingAllocator allocator(backend, 0);
    const auto nothing = [](const AllocatorEvent&) {};
    allocator.add_callback("cache", nothing);
    const auto text_of = [&](const char* name, const AllocatorCallback& callback) {
        try {
            allocator.add_callback(name, callback);
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string("none");
    };
    EXPECT_EQ(text_of("cache", nothing),
              "tensorpool: add_callback: \"cache\": the name is taken; expected another one");
    EXPECT_EQ(text_of("", nothing), "tensorpool: add_callback: \"\": it has no name; expected one");
    EXPECT_EQ(text_of("other", {}),
              "tensorpool: add_callback: \"other\": it has no function; expected one");
    EXPECT_TRUE(allocator.remove_callback("cache"));
    EXPECT_EQ(text_of("cache", nothing), "none");
}

TEST_F(Callbacks, AreNamedInTheReportOfAFailure) {
    CachingAllocator allocator(backend, 0);
    const auto text_of_failure = [&] {
        try {
            (void)allocator.allocate(300 * mib);
        } catch (const DeviceAllocationError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(text_of_failure().find("callbacks"), std::string::npos);
    allocator.add_callback("cache", [](const AllocatorEvent&) {});
    allocator.add_callback("trainer", [](const AllocatorEvent&) {});
    EXPECT_NE(text_of_failure().find("\n  callbacks: cache, trainer\n"), std::string::npos)
        << text_of_failure();
}

std::vector<std::string> kept_since(std::uint64_t number) {
    std::vector<std::string> kinds;
    for (const TimelineEntry& entry : timeline_since(number).entries) {
        const bool always = entry.kind == EntryKind::growth || entry.kind == EntryKind::give_back;
        if (entry.name == "kept" && !always) kinds.emplace_back(to_string(entry.kind));
    }
    return kinds;
}

TEST_F(Callbacks, TimelineRecordsOnlySelectedKinds) {
    CachingOptions options;
    options.name = "kept";
    const auto entries_with = [&](TimelineSet set) {
        options.timeline = set;
        CachingAllocator allocator(backend, 0, options);
        const std::uint64_t before = timeline_since(0).last;
        for (const std::size_t bytes : {std::size_t{512}, 4 * mib}) {
            allocator.deallocate(allocator.allocate(bytes));
            allocator.deallocate(allocator.allocate(bytes));
        }
        return kept_since(before);
    };
    using enum TimelineSet;
    using Words = std::vector<std::string>;
    EXPECT_EQ(entries_with(none), Words{});
    EXPECT_EQ(entries_with(allocations), (Words{"allocated", "allocated"}));
    EXPECT_EQ(entries_with(recycles | releases),
              (Words{"freed", "recycled", "freed", "freed", "recycled", "freed"}));
    EXPECT_EQ(entries_with(allocations | releases | large_only),
              (Words{"allocated", "freed", "freed"}));
    EXPECT_EQ(entries_with(profile), (Words{"profile", "profile"}));
}

}  // namespace
}  // namespace tensorpool
