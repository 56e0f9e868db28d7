#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include <tensorpool/device/simulated_backend.hpp>

namespace tensorpool::test {

inline SimulationOptions small_device(Schedule schedule = Schedule::eager) {
    SimulationOptions options;
    options.memory_bytes = std::size_t{64} << 20;
    options.schedule = schedule;
    return options;
}

/// A backend with helpers that fail the test where a call fails.
struct Device : SimulatedBackend {
    explicit Device(const SimulationOptions& options = small_device())
        : SimulatedBackend(options) {}

    void* memory(std::size_t bytes = 4096, int device = 0) {
        void* made = nullptr;
        EXPECT_EQ(allocate(device, bytes, StorageKind::private_storage, &made), DeviceStatus::ok);
        return made;
    }
    void* pinned(std::size_t bytes = 4096) {
        void* made = nullptr;
        EXPECT_EQ(allocate_pinned(0, bytes, &made), DeviceStatus::ok);
        return made;
    }
    void free(void* block, std::size_t bytes = 4096, int device = 0) {
        EXPECT_EQ(deallocate(device, block, bytes, StorageKind::private_storage), DeviceStatus::ok);
    }
    StreamHandle stream(int device = 0) {
        StreamHandle made = nullptr;
        EXPECT_EQ(create_stream(device, &made), DeviceStatus::ok);
        return made;
    }
    EventHandle event(int device = 0) {
        EventHandle made = nullptr;
        EXPECT_EQ(create_event(device, EventTiming::on, &made), DeviceStatus::ok);
        return made;
    }
    EventHandle recorded(StreamHandle on, int device = 0) {
        const EventHandle made = event(device);
        EXPECT_EQ(record_event(device, made, on), DeviceStatus::ok);
        return made;
    }
    void reads(StreamHandle on, const void* address, const char* label, std::size_t bytes = 4096,
               int device = 0) {
        EXPECT_EQ(launch(device, on, {label, {{address, bytes}}, {}, {}, 0}), DeviceStatus::ok);
    }
    void writes(StreamHandle on, const void* address, const char* label, std::size_t bytes = 4096,
                int device = 0) {
        EXPECT_EQ(launch(device, on, {label, {}, {{address, bytes}}, {}, 0}), DeviceStatus::ok);
    }
    void calls_back(StreamHandle on, std::function<void()> function, const char* label = "kernel",
                    std::uint64_t duration_ns = 0) {
        EXPECT_EQ(launch(0, on, {label, {}, {}, std::move(function), duration_ns}),
                  DeviceStatus::ok);
    }
    void synchronize(StreamHandle on, int device = 0) {
        EXPECT_EQ(synchronize_stream(device, on), DeviceStatus::ok);
    }
    void orders(StreamHandle first, StreamHandle later, int first_device = 0,
                int later_device = 0) {
        EXPECT_EQ(wait_event(later_device, later, recorded(first, first_device)), DeviceStatus::ok);
    }
};

}  // namespace tensorpool::test
