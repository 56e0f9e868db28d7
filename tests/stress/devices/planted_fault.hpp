#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <tensorpool/device/backend.hpp>

#include "stress/devices/subject.hpp"

namespace tensorpool::stress::devices {

/// An allocator with a fault, made from a correct one: some of its calls to the device, or of the
/// program's calls to it, are changed. The stress test must find each of these faults.
struct PlantedFault {
    enum class Part : bool { device_memory, pinned_memory };

    const char* name;
    Part part;
    /// Makes the layer between the allocator and its device; nullptr: none.
    std::unique_ptr<Backend> (*backend)(Backend&);
    /// Makes the layer between the program and the allocator; nullptr: none.
    std::unique_ptr<Subject> (*subject)(std::unique_ptr<Subject>, Backend&, int device);
};

std::span<const PlantedFault> planted_faults() noexcept;
/// Returns the fault of this name, or nullptr.
const PlantedFault* planted_fault(std::string_view name) noexcept;

}  // namespace tensorpool::stress::devices
