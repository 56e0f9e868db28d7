#include "simulation/simulation.hpp"

namespace tensorpool::device {
namespace {

// At most one page of each block: the pattern is visible, and untouched blocks stay cheap.
constexpr std::size_t max_painted = 4096;

constexpr std::uint32_t fresh_word = 0x7FEDBEEF;  // a NaN, as float
constexpr int freed_byte = 0xDD;

// A function in a stream may touch any memory, so blocks are painted only while no work is queued.
bool all_idle(const Scheduler& scheduler) noexcept {
    return std::ranges::all_of(scheduler.streams(), [](auto& stream) { return stream->idle(); });
}

bool is_there(const SimulatedMemory& memory, const BlockNote& note) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(note.address);
    return memory.first_gap(begin, note.bytes) == begin + note.bytes;
}

// Returns whether no queued work uses the block, so that it may be painted.
bool follow(Simulation& s, const BlockNote& note) {
    const std::shared_ptr<Stream> found = s.streams.find(note.device, note.stream);
    // A stream that was destroyed has no clock; what the host has waited for counts instead.
    const StreamName name = found == nullptr ? StreamName::host() : found->name;
    const VectorClock& clock = found == nullptr ? s.watch.host : s.ordering.clock_of(*found);
    const Capture* const capture = found == nullptr ? nullptr : found->capture.get();
    switch (note.kind) {
        case BlockNote::Kind::allocated:
            return s.lifetimes.block_allocated(s.watch.operation("allocate block", name), note,
                                               name, clock, capture == nullptr ? 0 : capture->id());
        case BlockNote::Kind::used:
            s.lifetimes.block_used(s.watch.operation("record_use", name), note, name);
            break;
        case BlockNote::Kind::freed:
            return s.lifetimes.block_freed(s.watch.operation("free block", name), note, clock);
        case BlockNote::Kind::reusable:
            s.lifetimes.block_reusable(s.watch.operation("block reusable", name), note, clock);
            break;
    }
    return false;
}

}  // namespace

void paint_fresh(const SimulationOptions& options, void* memory, std::size_t bytes) noexcept {
    if (!options.fill_patterns) return;
    const std::size_t painted = std::min(bytes, max_painted);
    auto* const begin = static_cast<std::byte*>(memory);
    for (std::size_t at = 0; at + sizeof fresh_word <= painted; at += sizeof fresh_word) {
        std::memcpy(begin + at, &fresh_word, sizeof fresh_word);
    }
}

void note_block(Simulation& simulation, const BlockNote& note) {
    if (!simulation.watch.on || !follow(simulation, note)) return;
    if (!all_idle(simulation.scheduler) || !is_there(simulation.memory, note)) return;
    if (note.kind == BlockNote::Kind::allocated) {
        paint_fresh(simulation.options, note.address, note.bytes);
    } else if (simulation.options.fill_patterns) {
        std::memset(note.address, freed_byte, std::min(note.bytes, max_painted));
    }
}

}  // namespace tensorpool::device

namespace tensorpool {

static std::string text_of(const HazardOperation& operation) {
    if (operation.number == 0) return "nothing known";
    return "\"" + operation.label + "\" (no. " + std::to_string(operation.number) + ", " +
           operation.stream + ")";
}

const char* to_string(HazardKind kind) noexcept {
    return device::text_of(
        {"reuse before the last use completed", "access after free", "read of uninitialised memory",
         "missing record_use", "host access before the work completed", "illegal call in capture",
         "access outside of any allocation", "free of memory in use", "double free",
         "unordered access", "overlapping blocks", "host access to private memory"},
        kind);
}

std::string to_string(const Hazard& hazard) {
    std::string text = to_string(hazard.kind);
    text += ": " + text_of(hazard.operation) + " after " + text_of(hazard.other);
    if (hazard.bytes == 0) return text;
    char range[64];
    std::snprintf(range, sizeof range, ", %zu bytes at %p", hazard.bytes, hazard.address);
    return text + range;
}

}  // namespace tensorpool
