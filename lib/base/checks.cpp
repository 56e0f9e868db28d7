#include "base/checks.hpp"

#include <stdexcept>

namespace tensorpool {

// Decided when the library is built, so that all of its users get the same default.
Checks default_checks() noexcept {
#ifdef NDEBUG
    return Checks::off;
#else
    return Checks::basic;
#endif
}

namespace {

// Also rejects NaN, which compares as false.
void expect_from_0(double most, double value, const std::string& owner, const std::string& name) {
    if (value >= 0.0 && value <= most) return;
    throw std::invalid_argument("tensorpool: " + owner + ": " + name + " is " +
                                std::to_string(value) + "; expected 0 to " +
                                std::to_string(static_cast<int>(most)));
}

}  // namespace

void validate(const GrowthPolicy& growth, const std::string& owner) {
    expect_from_0(1024, growth.factor, owner, "growth.factor");
    expect_from_0(1, growth.fraction, owner, "growth.fraction");
}

}  // namespace tensorpool
