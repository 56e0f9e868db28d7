#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include <tensorpool/device/hazard.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "device/call_errors.hpp"

namespace tensorpool::device {

/// Names a stream permanently: by its device and its number there. Number 0 is the default stream.
struct StreamName {
    std::uint16_t device = 0xFFFF;
    std::uint32_t number = 0;

    static constexpr StreamName host() noexcept { return {}; }
    constexpr bool is_host() const noexcept { return device == 0xFFFF; }
    friend constexpr bool operator==(const StreamName&, const StreamName&) = default;
};

/// The part of an operation that is kept for as long as a hazard may refer to it.
struct Operation {
    std::uint64_t number = 0;  // 0: none
    std::uint64_t tick = 0;    // position on its timeline
    std::uint32_t timeline = 0;
    std::uint32_t label = 0;  // number in HazardLog
    StreamName stream;

    friend bool operator==(const Operation&, const Operation&) = default;
};

/// How far each timeline had advanced when something happened (Mattern, "Virtual Time and Global
/// States of Distributed Systems", 1988). A timeline is a sequence of operations that run one after
/// the other: a stream, or a branch of a graph.
class VectorClock {
public:
    std::uint64_t operator[](std::size_t timeline) const noexcept {
        return timeline < ticks_.size() ? ticks_[timeline] : 0;
    }
    void raise(std::size_t timeline, std::uint64_t tick) {
        if (timeline >= ticks_.size()) ticks_.resize(timeline + 1);
        ticks_[timeline] = std::max(ticks_[timeline], tick);
    }
    /// Merges `other` into this clock. Returns whether this clock advanced.
    bool join(const VectorClock& other) {
        if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
        bool later = false;
        for (std::size_t timeline = 0; timeline < other.ticks_.size(); ++timeline) {
            if (other.ticks_[timeline] <= ticks_[timeline]) continue;
            ticks_[timeline] = other.ticks_[timeline];
            later = true;
        }
        return later;
    }
    bool covers(const VectorClock& other) const noexcept {
        for (std::size_t timeline = 0; timeline < other.ticks_.size(); ++timeline) {
            if ((*this)[timeline] < other.ticks_[timeline]) return false;
        }
        return true;
    }

private:
    std::vector<std::uint64_t> ticks_;
};

/// A sequence of operations, by its index in vector clocks.
struct Timeline {
    std::uint32_t number = 0;
    std::uint64_t tick = 0;  // of the last operation
};

/// Hands out timeline numbers. The number of an ended stream is reused, continuing at its last
/// tick, once the host has seen all of that stream's work complete. This keeps the clocks short.
class Timelines {
public:
    Timeline take(const VectorClock& host) {
        for (std::size_t i = 0; i < ended_.size(); ++i) {
            const Timeline ended = ended_[i];
            if (host[ended.number] < ended.tick) continue;
            ended_[i] = ended_.back();
            ended_.pop_back();
            return ended;
        }
        return {made_++, 0};
    }
    void give(Timeline timeline) { ended_.push_back(timeline); }

private:
    std::uint32_t made_ = 0;
    std::vector<Timeline> ended_;
};

inline bool known(const VectorClock& host, const Operation& operation) noexcept {
    return host[operation.timeline] >= operation.tick;
}

/// One lifetime of a range of memory, from its allocation to its free.
struct Lifetime {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    Operation born;
    Operation freed;               // number 0: still alive
    StreamName owner;              // for an allocator's block: the stream it was allocated for
    bool noted = false;            // reported by an allocator; otherwise the backend's own
    bool slab = false;             // the backend's own, and it holds blocks of an allocator
    bool host_reaches = false;     // writes by the host are not observed
    std::uint64_t capture = 0;     // capture during which it was allocated, or 0
    std::vector<StreamName> uses;  // streams reported to the allocator by record_use

    bool alive() const noexcept { return freed.number == 0; }
};

enum class Content : std::uint8_t { unallocated, uninitialised, written, freed };

/// What is known of a range: its content and the last accesses that the host has not yet seen
/// complete.
struct Cell {
    std::uintptr_t end = 0;
    Content content = Content::written;
    std::shared_ptr<Lifetime> lifetime;  // nullptr: memory of the host itself
    Operation writer;
    std::vector<Operation> readers;  // since the write; the last one of each timeline

    bool idle() const noexcept { return writer.number == 0 && readers.empty(); }
    bool like(const Cell& other) const noexcept {
        return content == other.content && lifetime == other.lifetime && writer == other.writer &&
               readers == other.readers;
    }
    /// Forgets accesses that the host has seen complete: all later work is ordered after them.
    void forget(const VectorClock& host) {
        if (writer.number != 0 && known(host, writer)) writer = {};
        std::erase_if(readers, [&](const Operation& reader) { return known(host, reader); });
    }
};

// Memory of the host itself with no pending work.
inline bool is_blank(const Cell& cell) noexcept {
    return cell.lifetime == nullptr && cell.idle();
}

/// Maps ranges of memory to what is known of them. Ranges never overlap. Adjacent equal ranges are
/// merged soon.
class ShadowMemory {
public:
    /// Calls `function(begin, cell)` for each cell of the range. Cells at the ends of the range are
    /// split; gaps are filled with new cells, as memory of the host itself.
    template <class Function>
    void visit(std::uintptr_t begin, std::size_t bytes, const VectorClock& host,
               Function&& function) {
        const std::uintptr_t end = begin + bytes;
        for (std::uintptr_t at = begin; at < end;) {
            const auto cell = cut(at, end);
            cell->second.forget(host);
            function(at, cell->second);
            at = cell->second.end;
        }
        join(begin, end);
        if (cells_.size() > sweep_at_) sweep(host);
    }
    /// Removes everything known of the range.
    void erase(std::uintptr_t begin, std::size_t bytes) {
        split(begin);
        split(begin + bytes);
        cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(begin + bytes));
    }
    /// Makes the whole range one cell.
    void replace(std::uintptr_t begin, std::size_t bytes, Cell cell) {
        erase(begin, bytes);
        cell.end = begin + bytes;
        cells_.emplace(begin, std::move(cell));
    }
    const Cell* find(std::uintptr_t address) const noexcept {
        const Cell* const found = find_before(address + 1);
        return found != nullptr && address < found->end ? found : nullptr;
    }
    /// Returns the last cell that begins before the address, or nullptr.
    const Cell* find_before(std::uintptr_t address) const noexcept {
        const auto after = cells_.lower_bound(address);
        return after == cells_.begin() ? nullptr : &std::prev(after)->second;
    }

    std::size_t cells() const noexcept { return cells_.size(); }

private:
    using Cells = std::map<std::uintptr_t, Cell>;

    // Returns the cell that begins at `begin` and ends no later than `end`.
    Cells::iterator cut(std::uintptr_t begin, std::uintptr_t end) {
        split(begin);
        const auto found = cells_.lower_bound(begin);
        if (found == cells_.end() || found->first != begin) {
            Cell fresh;
            fresh.end = found == cells_.end() ? end : std::min(end, found->first);
            return cells_.emplace_hint(found, begin, std::move(fresh));
        }
        if (found->second.end > end) split(end);
        return found;
    }
    void split(std::uintptr_t address) {
        auto found = cells_.upper_bound(address);
        if (found == cells_.begin()) return;
        --found;
        if (found->first == address || found->second.end <= address) return;
        Cell rest = found->second;
        found->second.end = address;
        cells_.emplace_hint(std::next(found), address, std::move(rest));
    }
    void join(std::uintptr_t begin, std::uintptr_t end) {
        auto cell = cells_.lower_bound(begin);
        if (cell != cells_.begin()) --cell;
        while (cell != cells_.end() && cell->first <= end) {
            const auto next = std::next(cell);
            if (is_blank(cell->second)) {
                cell = cells_.erase(cell);
            } else if (next != cells_.end() && next->first == cell->second.end &&
                       next->second.like(cell->second)) {
                cell->second.end = next->second.end;
                cells_.erase(next);
            } else {
                cell = next;
            }
        }
    }
    void sweep(const VectorClock& host) {
        for (auto& [begin, cell] : cells_) cell.forget(host);
        join(0, UINTPTR_MAX);
        sweep_at_ = std::max<std::size_t>(4096, cells_.size() * 2);
    }

    Cells cells_;
    std::size_t sweep_at_ = 4096;
};

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
