#pragma once

#include <unordered_map>

#include <tensorpool/device/hazard.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "device/call_errors.hpp"
#include "simulation/hazards/shadow_memory.hpp"

namespace tensorpool::device {

inline std::string text_of(StreamName stream) {
    if (stream.is_host()) return "host";
    const std::string device = to_string(Device{DeviceType::simulated, stream.device});
    if (stream.number == 0) return "default stream of " + device;
    return "stream " + std::to_string(stream.number) + " of " + device;
}

/// Stores the hazards found, each once for a kind and a pair of operations. It also stores the
/// labels of operations, which reports quote.
class HazardLog {
public:
    /// Keeps the text of at most `max_kept` hazards and counts the rest. Ignores all if `on` is
    /// false.
    HazardLog(bool on, std::size_t max_kept) : on_(on), max_kept_(max_kept) {}

    /// Returns the number of a label; equal texts have the same number.
    std::uint32_t label(const std::string& text) {
        const auto [found, added] =
            numbers_.try_emplace(text, static_cast<std::uint32_t>(labels_.size()));
        if (added) labels_.push_back(text);
        return found->second;
    }
    /// Begins a new operation: pairs reported for the previous one may be reported again.
    void begin() noexcept { reported_.clear(); }
    /// Adds a hazard, unless this kind and pair of operations was already reported.
    void add(HazardKind kind, const Operation& operation, const Operation& other,
             std::uintptr_t address, std::size_t bytes) {
        if (!on_) return;
        const Reported report = {kind, operation.number, other.number};
        if (std::find(reported_.begin(), reported_.end(), report) != reported_.end()) return;
        reported_.push_back(report);
        ++count_;
        if (kept_.size() >= max_kept_) return;
        kept_.push_back({kind, describe(operation), describe(other),
                         reinterpret_cast<const void*>(address), bytes});
    }

    const std::vector<Hazard>& kept() const noexcept { return kept_; }
    std::uint64_t count() const noexcept { return count_; }
    void clear() noexcept {
        kept_.clear();
        count_ = 0;
    }

private:
    struct Reported {
        HazardKind kind;
        std::uint64_t operation;
        std::uint64_t other;
        friend bool operator==(const Reported&, const Reported&) = default;
    };

    HazardOperation describe(const Operation& operation) const {
        if (operation.number == 0) return {};
        return {labels_[operation.label], text_of(operation.stream), operation.number};
    }

    bool on_;
    std::size_t max_kept_;
    std::uint64_t count_ = 0;
    std::vector<Hazard> kept_;
    std::vector<Reported> reported_;
    std::vector<std::string> labels_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// The state shared by the parts that detect hazards: the log, shadow memory and the host's clock.
struct Watch {
    explicit Watch(const SimulationOptions& options)
        : on(options.finds_hazards), log(options.finds_hazards, options.max_hazards) {}

    /// Numbers the next operation.
    Operation operation(const std::string& label, StreamName stream, std::uint32_t timeline = 0,
                        std::uint64_t tick = 0) {
        log.begin();
        if (!on) return {};
        return {++operations, tick, timeline, log.label(label), stream};
    }
    Operation host_operation(const std::string& label) {
        return operation(label, StreamName::host());
    }
    /// Merges a clock into the host's, after the host waited for what the clock stands for.
    void learn(const VectorClock& clock) {
        if (host.join(clock)) ++host_version;
    }

    bool on;
    HazardLog log;
    ShadowMemory shadow;
    VectorClock host;
    std::uint64_t host_version = 1;
    std::uint64_t operations = 0;
};

/// Whether anything with this clock is ordered after the operation. Everything that the host has
/// waited for is ordered before all work that it submits later.
inline bool ordered(const Operation& operation, const VectorClock& clock) noexcept {
    return operation.number == 0 || clock[operation.timeline] >= operation.tick;
}

}  // namespace tensorpool::device
