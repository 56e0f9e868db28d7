// Correct variants of the programs of hazards_test.cpp: no hazard is reported.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using test::expect_none;
using test::Slab;
using test::small_device;
using Simulated = test::Device;

constexpr std::size_t page = 4096;

/// Runs a program on a new device of each schedule and expects no hazard.
template <class Program>
void on_each_schedule(Program program) {
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy, Schedule::random}) {
        SCOPED_TRACE(schedule == Schedule::eager  ? "eager"
                     : schedule == Schedule::lazy ? "lazy"
                                                  : "random");
        SimulationOptions options = small_device(schedule);
        options.devices = 2;
        Simulated device(options);
        program(device);
        expect_none(device);
    }
}

TEST(CorrectProgram, EventsOrderStreams) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle one = device.stream();
        const StreamHandle two = device.stream();
        void* const memory = device.memory();
        for (int round = 0; round < 3; ++round) {
            device.writes(one, memory, "produce");
            device.orders(one, two);
            device.reads(two, memory, "consume");
            device.orders(two, one);
        }
        device.synchronize(one);
        device.free(memory);
    });
}

TEST(CorrectProgram, OrderIsTransitive) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle one = device.stream();
        const StreamHandle two = device.stream();
        const StreamHandle three = device.stream();
        void* const memory = device.memory();
        device.writes(one, memory, "produce");
        device.orders(one, two);
        device.orders(two, three);
        device.writes(three, memory, "overwrite");
        EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
        device.free(memory);
    });
}

TEST(CorrectProgram, StreamsReadTheSameMemoryConcurrently) {
    on_each_schedule([](Simulated& device) {
        void* const memory = device.memory();
        EXPECT_EQ(device.fill(0, memory, 1, page), DeviceStatus::ok);
        for (int i = 0; i < 4; ++i) device.reads(device.stream(), memory, "read");
    });
}

TEST(CorrectProgram, StreamsWriteToSeparateParts) {
    on_each_schedule([](Simulated& device) {
        char* const memory = static_cast<char*>(device.memory());
        for (int i = 0; i < 4; ++i)
            device.writes(device.stream(), memory + i * 1024, "write", 1024);
        EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
        device.reads(nullptr, memory, "read all");
    });
}

TEST(CorrectProgram, TheHostOrdersStreamsByWaiting) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle one = device.stream();
        void* const memory = device.memory();
        device.writes(one, memory, "produce");
        device.synchronize(one);
        device.writes(device.stream(), memory, "overwrite");
    });
}

TEST(CorrectProgram, SuccessfulQueryOrdersStreams) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle one = device.stream();
        void* const memory = device.memory();
        device.writes(one, memory, "produce");
        const EventHandle event = device.recorded(one);
        while (device.query_event(0, event) != DeviceStatus::ok) continue;
        device.writes(device.stream(), memory, "overwrite");
        while (device.query_stream(0, nullptr) != DeviceStatus::ok) continue;
        EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
        device.free(memory);
    });
}

TEST(CorrectProgram, CopiesThroughPinnedMemoryAreWaitedFor) {
    on_each_schedule([](Simulated& device) {
        char* const host = static_cast<char*>(device.pinned());
        void* const memory = device.memory();
        for (int round = 1; round < 4; ++round) {
            device.host_write(host, page);
            std::memset(host, round, page);
            EXPECT_EQ(device.copy_async(0, CopyKind::host_to_device, memory, host, page, nullptr),
                      DeviceStatus::ok);
            EXPECT_EQ(device.copy_async(0, CopyKind::device_to_host, host, memory, page, nullptr),
                      DeviceStatus::ok);
            device.synchronize(nullptr);
            device.host_read(host, page);
            EXPECT_EQ(host[page - 1], round);
        }
        EXPECT_EQ(device.deallocate_pinned(0, host, page), DeviceStatus::ok);
    });
}

TEST(CorrectProgram, PageableMemoryIsOverwrittenAfterItsCopyWasSubmitted) {
    on_each_schedule([](Simulated& device) {
        void* const memory = device.memory();
        std::vector<char> host(page);
        for (char round = 1; round < 4; ++round) {
            device.host_write(host.data(), page);
            std::memset(host.data(), round, page);
            EXPECT_EQ(
                device.copy_async(0, CopyKind::host_to_device, memory, host.data(), page, nullptr),
                DeviceStatus::ok);
        }
        EXPECT_EQ(device.copy(0, CopyKind::device_to_host, host.data(), memory, page),
                  DeviceStatus::ok);
        EXPECT_EQ(host[page - 1], 3);
    });
}

TEST(CorrectProgram, SynchronousCopiesFollowTheDefaultStream) {
    on_each_schedule([](Simulated& device) {
        void* const memory = device.memory();
        std::vector<char> host(page);
        device.writes(nullptr, memory, "produce");
        EXPECT_EQ(device.copy(0, CopyKind::device_to_host, host.data(), memory, page),
                  DeviceStatus::ok);
        device.reads(nullptr, memory, "consume");
        EXPECT_EQ(device.fill(0, memory, 1, page), DeviceStatus::ok);
    });
}

TEST(CorrectProgram, HostFunctionsAreOrdered) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle stream = device.stream();
        char* const host = static_cast<char*>(device.pinned());
        void* const memory = device.memory();
        EXPECT_EQ(device.fill_async(0, memory, 3, page, stream), DeviceStatus::ok);
        EXPECT_EQ(device.copy_async(0, CopyKind::device_to_host, host, memory, page, stream),
                  DeviceStatus::ok);
        const auto add = [](void* byte) { ++*static_cast<char*>(byte); };
        EXPECT_EQ(device.launch_host_function(0, stream, add, host), DeviceStatus::ok);
        EXPECT_EQ(device.copy_async(0, CopyKind::host_to_device, memory, host, page, stream),
                  DeviceStatus::ok);
        device.synchronize(stream);
        char first = 0;
        EXPECT_EQ(device.copy(0, CopyKind::device_to_host, &first, memory, 1), DeviceStatus::ok);
        EXPECT_EQ(first, 4);
    });
}

TEST(CorrectProgram, PeersCopyInTheOrderOfAnEvent) {
    on_each_schedule([](Simulated& device) {
        ASSERT_EQ(device.enable_peer_access(1, 0), DeviceStatus::ok);
        void* const from = device.memory(page, 0);
        void* const to = device.memory(page, 1);
        device.writes(nullptr, from, "produce");
        EXPECT_EQ(device.wait_event(1, nullptr, device.recorded(nullptr)), DeviceStatus::ok);
        EXPECT_EQ(device.copy_peer_async(1, to, 0, from, page, nullptr), DeviceStatus::ok);
        EXPECT_EQ(device.synchronize_device(1), DeviceStatus::ok);
        device.free(from, page, 0);
        device.free(to, page, 1);
    });
}

TEST(CorrectProgram, StreamOrderedMemoryIsReused) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle stream = device.stream();
        for (int round = 0; round < 10; ++round) {
            void* memory = nullptr;
            ASSERT_EQ(device.allocate_async(0, page, stream, &memory), DeviceStatus::ok);
            device.writes(stream, memory, "write");
            device.reads(stream, memory, "read");
            ASSERT_EQ(device.deallocate_async(0, memory, page, stream), DeviceStatus::ok);
        }
    });
}

TEST(CorrectProgram, ContentOfMovedMemoryIsKnown) {
    on_each_schedule([](Simulated& device) {
        const std::size_t granule = device.abilities(0).granularity;
        void* addresses = nullptr;
        MemoryHandle memory = nullptr;
        ASSERT_EQ(device.reserve_addresses(0, 2 * granule, &addresses), DeviceStatus::ok);
        ASSERT_EQ(device.create_memory(0, granule, &memory), DeviceStatus::ok);
        char* const there = static_cast<char*>(addresses) + granule;
        ASSERT_EQ(device.map_memory(0, addresses, granule, memory), DeviceStatus::ok);
        device.writes(nullptr, addresses, "write", granule);
        device.synchronize(nullptr);
        ASSERT_EQ(device.unmap_memory(0, addresses, granule), DeviceStatus::ok);
        ASSERT_EQ(device.map_memory(0, there, granule, memory), DeviceStatus::ok);
        device.reads(nullptr, there, "read", granule);
    });
}

TEST(CorrectProgram, SharedMemoryIsWrittenByTheHost) {
    on_each_schedule([](Simulated& device) {
        void* memory = nullptr;
        ASSERT_EQ(device.allocate(0, page, StorageKind::shared, &memory), DeviceStatus::ok);
        std::memset(device.host_pointer(0, memory), 1, page);
        device.reads(nullptr, memory, "read");
        device.synchronize(nullptr);
        device.host_write(memory, page);
    });
}

TEST(CorrectProgram, HostBufferIsReusedAfterSynchronousCopies) {
    on_each_schedule([](Simulated& device) {
        void* const memory = device.memory();
        for (int round = 0; round < 3; ++round) {
            std::vector<char> host(page, 1);
            const StreamHandle stream = device.stream();
            EXPECT_EQ(
                device.copy_async(0, CopyKind::host_to_device, memory, host.data(), page, stream),
                DeviceStatus::ok);
            device.synchronize(stream);
            EXPECT_EQ(device.destroy_stream(0, stream), DeviceStatus::ok);
        }
    });
}

// Blocks of an allocator -------------------------------------------------------------------------

TEST(CorrectProgram, BlockIsReusedByItsStreamAtOnce) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle stream = device.stream();
        Slab slab(device);
        for (int round = 0; round < 3; ++round) {
            slab.allocated(0, stream);
            device.writes(stream, slab.at(0), "write", Slab::block);
            device.reads(stream, slab.at(0), "read", Slab::block);
            slab.freed(0, stream);
        }
        device.synchronize(stream);
        device.free(slab.at(0), Slab::bytes);
    });
}

TEST(CorrectProgram, BlockOfTwoStreamsIsReusedAfterBoth) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle one = device.stream();
        const StreamHandle two = device.stream();
        Slab slab(device);
        slab.allocated(0, one);
        device.writes(one, slab.at(0), "produce", Slab::block);
        device.orders(one, two);
        device.reads(two, slab.at(0), "consume", Slab::block);
        slab.used(0, two);
        slab.freed(0, one);
        EXPECT_EQ(device.synchronize_event(0, device.recorded(two)), DeviceStatus::ok);
        slab.reusable(0, one);
        slab.allocated(0, one);
        device.writes(one, slab.at(0), "write", Slab::block);
    });
}

TEST(CorrectProgram, UseThatTheOwnStreamWaitedForNeedsNoRecordUse) {
    on_each_schedule([](Simulated& device) {
        const StreamHandle one = device.stream();
        const StreamHandle two = device.stream();
        Slab slab(device);
        slab.allocated(0, one);
        device.writes(one, slab.at(0), "produce", Slab::block);
        device.orders(one, two);
        device.reads(two, slab.at(0), "consume", Slab::block);
        device.orders(two, one);
        slab.freed(0, one);
        slab.allocated(0, one);
        device.writes(one, slab.at(0), "write", Slab::block);
    });
}

TEST(CorrectProgram, FreedBlocksAreSplitAndMerged) {
    on_each_schedule([](Simulated& device) {
        Slab slab(device);
        slab.allocated(0, nullptr);
        slab.allocated(1, nullptr);
        device.writes(nullptr, slab.at(0), "write two", 2 * Slab::block);
        slab.freed(0, nullptr);
        slab.freed(1, nullptr);
        device.note_block({BlockNote::Kind::allocated, 0, slab.at(0), 2 * Slab::block, nullptr});
        device.writes(nullptr, slab.at(0), "write both", 2 * Slab::block);
        device.note_block({BlockNote::Kind::freed, 0, slab.at(0), 2 * Slab::block, nullptr});
        slab.allocated(1, nullptr);
        device.writes(nullptr, slab.at(1), "write the second", Slab::block);
    });
}

}  // namespace
}  // namespace tensorpool
