#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace tensorpool::testing {

/// The choices that a program makes: at random without end, or as given by bytes, which end.
class Choices {
public:
    Choices(unsigned seed) : random_(seed) {}
    Choices(std::span<const std::uint8_t> bytes) : rest_(bytes), are_random_(false) {}

    /// Returns a number below `limit`, which is above 0; 0 after the end.
    std::size_t below(std::size_t limit) {
        if (are_random_) return random_() % limit;
        if (at_end()) return 0;
        const std::size_t byte = rest_.front();
        rest_ = rest_.subspan(1);
        return byte % limit;
    }
    bool at_end() const { return !are_random_ && rest_.empty(); }

private:
    std::minstd_rand random_;
    std::span<const std::uint8_t> rest_;
    bool are_random_ = true;
};

}  // namespace tensorpool::testing
