#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <tensorpool/device/hazard.hpp>

namespace tensorpool::stress::devices {

/// What an allocator did wrong, as the program found it.
class Violation : public std::runtime_error {
public:
    explicit Violation(const std::string& text) : std::runtime_error(text) {}
    explicit Violation(Hazard hazard)
        : std::runtime_error(to_string(hazard)), hazard_(std::move(hazard)) {}

    /// Where the device found it, and not the model beside it.
    const std::optional<Hazard>& hazard() const noexcept { return hazard_; }

private:
    std::optional<Hazard> hazard_;
};

}  // namespace tensorpool::stress::devices
