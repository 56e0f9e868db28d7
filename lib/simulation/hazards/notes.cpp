#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simulation/simulation.hpp"

namespace tensorpool::device {
namespace {

// A page of each block: enough to be seen, and blocks that nobody touches stay cheap.
constexpr std::size_t most_painted = 4096;
constexpr std::uint32_t fresh_word = 0x7FEDBEEF;  // a NaN, as float
constexpr int freed_byte = 0xDD;

}  // namespace

void Simulation::paint(void* block, std::size_t bytes, Paint color) const noexcept {
    if (!options.fill_patterns) return;
    const std::size_t painted = std::min(bytes, most_painted);
    if (color == Paint::freed) {
        std::memset(block, freed_byte, painted);
        return;
    }
    auto* const begin = static_cast<std::byte*>(block);
    for (std::size_t at = 0; at + sizeof fresh_word <= painted; at += sizeof fresh_word) {
        std::memcpy(begin + at, &fresh_word, sizeof fresh_word);
    }
}

bool Simulation::all_idle() const noexcept {
    return std::all_of(scheduler.streams().begin(), scheduler.streams().end(),
                       [](const auto& stream) { return stream->idle(); });
}

void Simulation::note(const BlockNote& note) {
    if (!watch.on) return;
    const std::shared_ptr<Stream> found = stream(note.device, note.stream);
    // It may be destroyed by now: then only what the host knows counts.
    const StreamName name = found == nullptr ? StreamName::host() : found->name;
    const VectorClock& clock = found == nullptr ? watch.host : clock_of(*found);
    const Capture* const capture = found == nullptr ? nullptr : found->capture.get();
    bool unused = false;
    switch (note.kind) {
        case BlockNote::Kind::allocated:
            unused = lives.block_allocated(watch.operation("allocate block", name), note, name,
                                           clock, capture == nullptr ? 0 : capture->id());
            break;
        case BlockNote::Kind::used:
            return lives.block_used(watch.operation("record_use", name), note, name);
        case BlockNote::Kind::freed:
            unused = lives.block_freed(watch.operation("free block", name), note, clock);
            break;
        case BlockNote::Kind::reusable:
            return lives.block_reusable(watch.operation("block reusable", name), note, clock);
    }
    // What a function of a stream does is not known: nothing is painted below it.
    if (!unused || !all_idle()) return;
    const bool fresh = note.kind == BlockNote::Kind::allocated;
    if (memory.first_gap(reinterpret_cast<std::uintptr_t>(note.address), note.bytes) !=
        reinterpret_cast<std::uintptr_t>(note.address) + note.bytes) {
        return;
    }
    paint(note.address, note.bytes, fresh ? Paint::fresh : Paint::freed);
}

void Simulation::end_life(SimulationLock& lock, std::uintptr_t address, const char* label,
                          LifeKeeper::Gone gone) {
    const Operation operation = watch.host_operation(label);
    if (lives.end(operation, address, watch.host, gone)) return;
    scheduler.drain(lock);
}

void Simulation::wrong_end(const char* label, const void* memory_given) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_given);
    const Allocation* const there = memory.find(address);
    if (there == nullptr || there->ending) lives.wrong_end(watch.host_operation(label), address);
}

}  // namespace tensorpool::device
