#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <tensorpool/device/backend.hpp>

#include "stress/devices/subject.hpp"

namespace tensorpool::stress::devices {

/// An allocator that goes wrong once in a while, made of ours: what it asks of its device, or what
/// is asked of it, does not arrive as it should. A test that is worth its time finds each of them.
struct PlantedFault {
    enum class Part : bool { device_memory, pinned_memory };

    const char* name;
    Part part;
    /// What stands between the allocator and its device; nullptr: nothing.
    std::unique_ptr<Backend> (*backend)(Backend&);
    /// What stands between the program and the allocator; nullptr: nothing.
    std::unique_ptr<Subject> (*subject)(std::unique_ptr<Subject>, Backend&, int device);
};

std::span<const PlantedFault> planted_faults() noexcept;
/// nullptr where none has this name.
const PlantedFault* planted_fault(std::string_view name) noexcept;

}  // namespace tensorpool::stress::devices
