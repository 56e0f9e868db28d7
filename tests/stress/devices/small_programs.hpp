#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <tensorpool/device/simulated_backend.hpp>

#include "stress/devices/site.hpp"

namespace tensorpool::stress::devices {

/// A device with two streams besides its default stream, and helpers that submit work to them. They
/// throw if a call fails.
class SmallDevice {
public:
    explicit SmallDevice(SimulatedBackend& its_backend) : backend(its_backend) {
        expect_ok(backend.create_stream(0, &one));
        expect_ok(backend.create_stream(0, &two));
    }

    void* memory(Subject& of, std::size_t bytes, StreamHandle stream) {
        void* const block = of.allocate(bytes, stream);
        if (block == nullptr) throw std::runtime_error("the allocation failed");
        held_.emplace_back(&of, block);
        return block;
    }
    void free(Subject& of, void* block) {
        std::erase(held_, std::pair{&of, block});
        of.deallocate(block);
    }
    /// Frees what the program still holds.
    void free_all() {
        while (!held_.empty()) free(*held_.back().first, held_.back().second);
    }
    void writes(StreamHandle on, void* block, std::size_t bytes, const char* label = "write") {
        expect_ok(backend.launch(0, on, {label, {}, {{block, bytes}}, {}, 0}));
    }
    void reads(StreamHandle on, void* block, std::size_t bytes, const char* label = "read") {
        expect_ok(backend.launch(0, on, {label, {{block, bytes}}, {}, {}, 0}));
    }
    void uploads(StreamHandle on, void* to, void* from, std::size_t bytes) {
        expect_ok(backend.copy_async(0, CopyKind::host_to_device, to, from, bytes, on));
    }
    void downloads(StreamHandle on, void* to, void* from, std::size_t bytes) {
        expect_ok(backend.copy_async(0, CopyKind::device_to_host, to, from, bytes, on));
    }
    void orders(StreamHandle first, StreamHandle later) {
        EventHandle event = nullptr;
        expect_ok(backend.create_event(0, EventFlags::none, &event));
        expect_ok(backend.record_event(0, event, first));
        expect_ok(backend.wait_event(0, later, event));
        expect_ok(backend.destroy_event(0, event));
    }
    static void expect_ok(DeviceStatus status) {
        if (status != DeviceStatus::ok) throw std::runtime_error(to_string(status));
    }

    SimulatedBackend& backend;
    StreamHandle one = nullptr;
    StreamHandle two = nullptr;

private:
    std::vector<std::pair<Subject*, void*>> held_;
};

/// A program of three to six pieces of work, with calls of an allocator between them.
struct SmallProgram {
    const char* name;
    void (*run)(SmallDevice& device, Site& site);
};

std::span<const SmallProgram> small_programs() noexcept;
/// REQUIRES: a program of this name exists.
const SmallProgram& small_program(std::string_view name) noexcept;

/// The memory of their device: eight granules.
inline constexpr std::size_t granule = std::size_t{2} << 20;
inline constexpr std::size_t small_device_bytes = 8 * granule;

}  // namespace tensorpool::stress::devices
