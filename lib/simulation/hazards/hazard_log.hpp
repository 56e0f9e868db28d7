#pragma once

#include <unordered_map>

#include <tensorpool/device/hazard.hpp>

#include "simulation/hazards/vector_clock.hpp"

namespace tensorpool::device {

/// Stores the hazards found, each once for a kind and a pair of operations. It also stores the
/// labels of operations, which reports quote.
class HazardLog {
public:
    /// Keeps the text of at most `max_kept` hazards and counts the rest. Ignores all if `on` is
    /// false.
    HazardLog(bool on, std::size_t max_kept) : on_(on), max_kept_(max_kept) {}

    /// Returns the number of a label; equal texts have the same number.
    std::uint32_t label(const std::string& text);
    /// Begins a new operation: pairs reported for the previous one may be reported again.
    void begin() noexcept { reported_.clear(); }
    /// Adds a hazard, unless this kind and pair of operations was already reported.
    void add(HazardKind kind, const Operation& operation, const Operation& other,
             std::uintptr_t address, std::size_t bytes);

    const std::vector<Hazard>& kept() const noexcept { return kept_; }
    std::uint64_t count() const noexcept { return count_; }
    void clear() noexcept;

private:
    struct Reported {
        HazardKind kind;
        std::uint64_t operation;
        std::uint64_t other;
        friend bool operator==(const Reported&, const Reported&) = default;
    };

    HazardOperation describe(const Operation& operation) const;

    bool on_;
    std::size_t max_kept_;
    std::uint64_t count_ = 0;
    std::vector<Hazard> kept_;
    std::vector<Reported> reported_;
    std::vector<std::string> labels_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace tensorpool::device
