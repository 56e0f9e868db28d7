#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <tensorpool/device/simulated_kernel.hpp>

#include "device/call_errors.hpp"
#include "simulation/hazards/watch.hpp"
#include "simulation/simulated_memory.hpp"

namespace tensorpool::device {

/// The work, or the host, that touches memory.
struct Toucher {
    Operation operation;
    const VectorClock* clock = nullptr;  // what it comes after
    int device = 0;
    enum class Kind : std::uint8_t {
        work,      // of a stream
        captured,  // not done yet: only whether the memory is there
        copy,      // without a stream: it is done now
        host,      // the host itself: it does not reach private memory
    } kind = Kind::work;
    std::uint64_t capture = 0;         // the graph whose work it is; 0: of none
    std::uint64_t captured_until = 0;  // the last operation of that capture

    bool host() const noexcept { return kind == Kind::copy || kind == Kind::host; }
};

/// Checks each access to memory: that the memory is there and reached, and that the access is
/// ordered after those before it. Accesses are kept in the shadow memory for the checks that
/// follow.
class AccessChecker {
public:
    using Reaches = std::function<bool(int device, int other)>;

    AccessChecker(Watch& watch, const SimulatedMemory& memory, Reaches reaches)
        : watch_(watch), memory_(memory), reaches_(std::move(reaches)) {}

    /// Like `touch`, but refuses with DeviceError what is not there.
    void check(const Toucher& by, const std::vector<MemoryRange>& reads,
               const std::vector<MemoryRange>& writes) {
        if (!touch(by, reads, writes)) refuse_touch();
    }
    [[noreturn]] static void refuse_touch() { refuse("it touches memory that is not there"); }
    /// Returns false if the access touches what is not there; then nothing of it may be done.
    bool touch(const Toucher& by, const std::vector<MemoryRange>& reads,
               const std::vector<MemoryRange>& writes);

private:
    bool there(const Toucher& by, const MemoryRange& range);
    bool reached(const Toucher& by, const Allocation& allocation, std::uintptr_t address,
                 std::size_t bytes);
    void read(const Toucher& by, const MemoryRange& range);
    void write(const Toucher& by, const MemoryRange& range);
    bool usable(const Toucher& by, std::uintptr_t address, const Cell& cell);
    void order(const Toucher& by, std::uintptr_t address, const Cell& cell, const Operation& prior);

    Watch& watch_;
    const SimulatedMemory& memory_;
    Reaches reaches_;
};

}  // namespace tensorpool::device
