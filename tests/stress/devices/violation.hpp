#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <tensorpool/device/hazard.hpp>

namespace tensorpool::stress::devices {

/// A fault of an allocator, found by the program or the device.
class Violation : public std::runtime_error {
public:
    explicit Violation(const std::string& text) : std::runtime_error(text) {}
    explicit Violation(Hazard hazard)
        : std::runtime_error(to_string(hazard)), hazard_(std::move(hazard)) {}

    /// The hazard, if the device found the fault rather than the program's model.
    const std::optional<Hazard>& hazard() const noexcept { return hazard_; }

private:
    std::optional<Hazard> hazard_;
};

}  // namespace tensorpool::stress::devices
