#include <tensorpool/device/simulation_options.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using test::expect_none;
using test::Slab;
using test::small_device;
using Simulated = test::Device;

constexpr std::size_t page = 4096;
constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t free_bytes(Simulated& device) {
    DeviceMemoryInfo info;
    EXPECT_EQ(device.memory_info(0, info), DeviceStatus::ok);
    return info.free_bytes;
}

TEST(SimulationOptions, AbilitiesFollowTheOptions) {
    SimulationOptions options = small_device();
    options.virtual_memory = options.stream_ordered_allocation = options.graph_capture = false;
    options.shared_storage = options.managed_storage = options.watches_blocks = false;
    options.recommended_bytes = 5 * mib;
    options.largest_allocation = mib;
    Simulated device(options);
    const DeviceAbilities abilities = device.abilities(0);
    EXPECT_EQ(abilities.granularity, 0U);
    EXPECT_EQ(abilities.recommended_bytes, 5 * mib);
    EXPECT_FALSE(abilities.watches_blocks);
    void* memory = nullptr;
    EXPECT_EQ(device.allocate(0, mib, StorageKind::shared, &memory), DeviceStatus::not_supported);
    EXPECT_EQ(device.allocate(0, mib, StorageKind::managed, &memory), DeviceStatus::not_supported);
    EXPECT_EQ(device.advise_memory(0, &memory, 1, MemoryAdvice::read_mostly, Processor::device),
              DeviceStatus::not_supported);
    EXPECT_EQ(device.allocate_async(0, mib, nullptr, &memory), DeviceStatus::not_supported);
    EXPECT_EQ(device.reserve_addresses(0, mib, &memory), DeviceStatus::not_supported);
    EXPECT_EQ(device.begin_capture(0, nullptr), DeviceStatus::not_supported);
    EXPECT_EQ(device.allocate(0, mib + 1, StorageKind::private_storage, &memory),
              DeviceStatus::out_of_memory);
}

TEST(SimulationOptions, OtherProcessesHoldMemoryToo) {
    SimulationOptions options = small_device();
    options.other_process_bytes = 60 * mib;
    Simulated device(options);
    EXPECT_EQ(free_bytes(device), 4 * mib);
    device.set_other_process_bytes(0, 80 * mib);
    EXPECT_EQ(free_bytes(device), 0U);
    void* memory = nullptr;
    EXPECT_EQ(device.allocate(0, page, StorageKind::private_storage, &memory),
              DeviceStatus::out_of_memory);
}

TEST(SimulationOptions, FreeSizeIsLateUntilItIsSettled) {
    SimulationOptions options = small_device();
    options.late_free_size = true;
    Simulated device(options);
    for (const bool settles : {true, false}) {
        device.free(device.memory(mib), mib);
        EXPECT_EQ(free_bytes(device), 63 * mib);
        EXPECT_EQ(settles ? device.settle_memory(0) : device.synchronize_stream(0, nullptr),
                  DeviceStatus::ok);
        EXPECT_EQ(free_bytes(device), 64 * mib);
    }
}

TEST(SimulationOptions, UnifiedMemoryHasAHostPointer) {
    SimulationOptions options = small_device();
    Simulated apart(options);
    EXPECT_EQ(apart.host_pointer(0, apart.memory()), nullptr);
    options.unified_memory = true;
    Simulated one(options);
    char* const memory = static_cast<char*>(one.memory());
    EXPECT_EQ(one.host_pointer(0, memory + 5), memory + 5);
}

TEST(SimulationOptions, FreshAndFreedMemoryHoldPatterns) {
    for (const bool wanted : {true, false}) {
        SimulationOptions options = small_device();
        options.fill_patterns = wanted;
        Simulated device(options);
        Slab slab(device);
        std::uint32_t word = 0;
        slab.allocated(1, nullptr);
        std::memcpy(&word, slab.at(1), sizeof word);
        EXPECT_EQ(word == 0x7FEDBEEF, wanted);
        slab.freed(1, nullptr);
        std::memcpy(&word, slab.at(1), sizeof word);
        EXPECT_EQ(word == 0xDDDDDDDD, wanted);
    }
}

TEST(SimulationOptions, HazardDetectionCanBeDisabled) {
    SimulationOptions options = small_device(Schedule::lazy);
    options.finds_hazards = false;
    Simulated device(options);
    EXPECT_FALSE(device.abilities(0).watches_blocks);
    void* const memory = device.memory();
    bool done = false;
    EXPECT_EQ(device.launch(0, device.stream(), {"", {}, {{memory, page}}, [&] { done = true; }}),
              DeviceStatus::ok);
    device.free(memory);
    EXPECT_TRUE(done);  // memory is still not freed before the pending work ran
    EXPECT_EQ(device.launch(0, nullptr, {"", {{memory, page}}, {}, {}}),
              DeviceStatus::invalid_argument);
    expect_none(device);
}

TEST(SimulationOptions, MaxHazardsLimitsTheKeptHazards) {
    SimulationOptions options = small_device();
    options.max_hazards = 2;
    Simulated device(options);
    for (int i = 0; i < 5; ++i) device.reads(nullptr, device.memory(), "read");
    EXPECT_EQ(device.hazards().size(), 2U);
    EXPECT_EQ(device.hazard_count(), 5U);
    device.clear_hazards();
    EXPECT_EQ(device.hazard_report(), "");
    EXPECT_EQ(device.hazard_count(), 0U);
}

// Schedules --------------------------------------------------------------------------------------

std::string order_with_seed(std::uint64_t seed) {
    SimulationOptions options = small_device(Schedule::random);
    options.seed = seed;
    Simulated device(options);
    std::string order;
    for (char name = 'a'; name <= 'z'; ++name) {
        device.calls_back(device.stream(), [&order, name] { order += name; });
    }
    EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
    return order;
}

TEST(SimulationOptions, SeedDecidesTheOrder) {
    EXPECT_EQ(order_with_seed(1), order_with_seed(1));
    EXPECT_NE(order_with_seed(1), order_with_seed(2));
    EXPECT_EQ(order_with_seed(1).size(), 26U);
}

TEST(SimulationOptions, PollingProgramAdvancesWhenPatienceEnds) {
    SimulationOptions options = small_device(Schedule::lazy);
    options.patience = 3;
    Simulated device(options);
    bool done = false;
    device.calls_back(nullptr, [&] { done = true; });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(device.query_stream(0, nullptr), DeviceStatus::not_ready);
    EXPECT_FALSE(done);
    EXPECT_EQ(device.query_stream(0, nullptr), DeviceStatus::ok);
    EXPECT_TRUE(done);
}

TEST(SimulationOptions, StreamIsAdvancedStepByStep) {
    Simulated device(small_device(Schedule::lazy));
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    std::string order;
    device.calls_back(one, [&] { order += '1'; });
    device.orders(one, two);
    device.calls_back(two, [&] { order += '2'; });
    EXPECT_FALSE(device.step(0, two));
    EXPECT_TRUE(device.step(0, one));
    EXPECT_FALSE(device.step(0, one));
    EXPECT_TRUE(device.step(0, two));
    EXPECT_EQ(order, "12");
}

// Counts and time --------------------------------------------------------------------------------

TEST(SimulatedCalls, EachFunctionIsCounted) {
    Simulated device;
    void* const memory = device.memory();
    device.free(memory);
    device.synchronize(nullptr);
    (void)device.query_stream(7, nullptr);
    const SimulatedCalls calls = device.calls();
    EXPECT_EQ(calls[SimulatedCall::allocate], 1U);
    EXPECT_EQ(calls[SimulatedCall::deallocate], 1U);
    EXPECT_EQ(calls[SimulatedCall::query_stream], 1U);
    EXPECT_EQ(calls.waits(), 1U);
    device.reset_calls();
    EXPECT_EQ(device.calls()[SimulatedCall::allocate], 0U);
    EXPECT_STREQ(to_string(SimulatedCall::copy_peer_async), "copy_peer_async");
    EXPECT_STREQ(to_string(SimulatedCall::launch), "launch");
}

TEST(SimulatedClock, StreamsRunConcurrentlyInSimulatedTime) {
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy, Schedule::random}) {
        SimulationOptions options = small_device(schedule);
        options.launch_latency_ns = 10;
        Simulated device(options);
        const StreamHandle one = device.stream();
        const StreamHandle two = device.stream();
        device.calls_back(one, {}, "short", 1'000'000);
        device.calls_back(two, {}, "long", 3'000'000);
        EXPECT_EQ(device.now_ns(), 20U);
        device.synchronize(one);
        EXPECT_EQ(device.now_ns(), 1'000'010U);
        device.synchronize(two);
        EXPECT_EQ(device.now_ns(), 3'000'020U);
        device.advance_ns(5);
        EXPECT_EQ(device.now_ns(), 3'000'025U);
    }
}

TEST(SimulatedClock, EventsMeasureTheDurationOfWork) {
    SimulationOptions options = small_device();
    options.launch_latency_ns = 0;
    options.host_to_device_bytes_per_ns = 2;
    Simulated device(options);
    void* const host = device.pinned(mib);
    void* const memory = device.memory(mib);
    const EventHandle before = device.recorded(nullptr);
    EXPECT_EQ(device.copy_async(0, CopyKind::host_to_device, memory, host, mib, nullptr),
              DeviceStatus::ok);
    const EventHandle after = device.recorded(nullptr);
    device.synchronize(nullptr);
    float ms = 0;
    ASSERT_EQ(device.elapsed_ms(0, before, after, &ms), DeviceStatus::ok);
    EXPECT_FLOAT_EQ(ms, static_cast<float>(mib / 2) / 1e6F);
}

// Large workloads --------------------------------------------------------------------------------

/// Allocates and frees blocks on four streams, whose work accesses them. Sometimes a second stream
/// uses a block too, ordered by events.
class Workload {
public:
    Workload(Simulated& device, std::uint64_t seed) : device_(device), random_(seed) {
        for (int i = 0; i < 4; ++i) streams_.push_back(device.stream());
        event_ = device.event();
        blocks_.resize(64);
        begin_ = static_cast<char*>(device.memory(blocks_.size() * block));
    }

    void step() {
        const std::size_t number = random_() % blocks_.size();
        Block& chosen = blocks_[number];
        void* const address = begin_ + number * block;
        const StreamHandle owner = streams_[number % streams_.size()];
        const auto note = [&](BlockNote::Kind kind) {
            device_.note_block({kind, 0, address, block, owner});
        };
        if (!chosen.alive) {
            note(BlockNote::Kind::allocated);
            device_.writes(owner, address, "write", block);
            chosen.alive = true;
        } else if (random_() % 4 == 0) {
            note(BlockNote::Kind::freed);
            chosen.alive = false;
        } else if (random_() % 4 == 0) {
            use_elsewhere(owner, address);
        } else {
            device_.reads(owner, address, "read", block);
        }
    }

private:
    static constexpr std::size_t block = 65'536;
    struct Block {
        bool alive = false;
    };

    void orders(StreamHandle first, StreamHandle later) {
        EXPECT_EQ(device_.record_event(0, event_, first), DeviceStatus::ok);
        EXPECT_EQ(device_.wait_event(0, later, event_), DeviceStatus::ok);
    }
    void use_elsewhere(StreamHandle owner, void* address) {
        const StreamHandle other = streams_[random_() % streams_.size()];
        orders(owner, other);
        device_.writes(other, address, "write elsewhere", block);
        orders(other, owner);
    }

    Simulated& device_;
    std::mt19937_64 random_;
    std::vector<StreamHandle> streams_;
    EventHandle event_ = nullptr;
    std::vector<Block> blocks_;
    char* begin_ = nullptr;
};

TEST(Simulation, RandomWorkloadHasNoHazardInAnySchedule) {
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy, Schedule::random}) {
        Simulated device(small_device(schedule));
        Workload workload(device, 7);
        for (int step = 0; step < 100'000; ++step) {
            workload.step();
            if (step % 1'000 != 0) continue;
            EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
        }
        expect_none(device);
    }
}

TEST(Simulation, ConcurrentThreadsReportNoHazard) {
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy, Schedule::random}) {
        Simulated device(small_device(schedule));
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&, i] {
                const StreamHandle stream = device.stream();
                char* const memory = static_cast<char*>(device.memory());
                for (int round = 0; round < 200; ++round) {
                    const auto write = [memory, i] { std::memset(memory, i, page); };
                    EXPECT_EQ(device.launch(0, stream, {"set", {}, {{memory, page}}, write, 0}),
                              DeviceStatus::ok);
                    const EventHandle event = device.recorded(stream);
                    while (device.query_event(0, event) != DeviceStatus::ok) continue;
                    EXPECT_EQ(memory[page - 1], i);
                    EXPECT_EQ(device.destroy_event(0, event), DeviceStatus::ok);
                }
                device.synchronize(stream);
                device.free(memory);
                EXPECT_EQ(device.destroy_stream(0, stream), DeviceStatus::ok);
            });
        }
        for (std::thread& thread : threads) thread.join();
        expect_none(device);
    }
}

}  // namespace
}  // namespace tensorpool
