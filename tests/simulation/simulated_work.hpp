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

/// A backend with helper functions that fail the test if a call fails.
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
        EXPECT_EQ(create_event(device, EventFlags::timing, &made), DeviceStatus::ok);
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

/// A slab whose blocks are reported to the device as an allocator would report them.
struct Slab {
    static constexpr std::size_t block = 65'536;
    static constexpr std::size_t bytes = 16 * block;

    explicit Slab(Device& of) : device(of), begin(static_cast<char*>(of.memory(bytes))) {}

    void* at(std::size_t number) const { return begin + number * block; }
    void note(BlockNote::Kind kind, std::size_t number, StreamHandle stream) {
        device.note_block({kind, 0, at(number), block, stream});
    }
    void allocated(std::size_t number, StreamHandle stream) {
        note(BlockNote::Kind::allocated, number, stream);
    }
    void used(std::size_t number, StreamHandle stream) {
        note(BlockNote::Kind::used, number, stream);
    }
    void freed(std::size_t number, StreamHandle stream) {
        note(BlockNote::Kind::freed, number, stream);
    }
    void reusable(std::size_t number, StreamHandle stream) {
        note(BlockNote::Kind::reusable, number, stream);
    }

    Device& device;
    char* begin;
};

inline void expect_none(const Device& device) {
    EXPECT_EQ(device.hazard_count(), 0U) << device.hazard_report();
}

/// Expects exactly one hazard, of this kind and between operations with these labels.
inline void expect_hazard(const Device& device, HazardKind kind, const std::string& operation,
                          const std::string& other) {
    ASSERT_EQ(device.hazard_count(), 1U) << device.hazard_report();
    const Hazard found = device.hazards().front();
    EXPECT_STREQ(to_string(found.kind), to_string(kind));
    EXPECT_EQ(found.operation.label, operation);
    EXPECT_EQ(found.other.label, other);
    const std::string text = to_string(found);
    EXPECT_NE(text.find('"' + operation + "\" (no. "), std::string::npos) << text;
    if (other.empty()) return;
    EXPECT_NE(text.find('"' + other + "\" (no. "), std::string::npos) << text;
}

}  // namespace tensorpool::test
