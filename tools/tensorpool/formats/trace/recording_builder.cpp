#include "formats/trace/recording_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tensorpool::command::trace {

// A starting recorder may report a source after its end. Such changes are dropped.
std::vector<CapacityChange> CapacityChanges::take(std::size_t sources) {
    std::vector<bool> has_changes(sources);
    std::vector<std::uint64_t> ended(sources, UINT64_MAX);
    for (const CapacityChange& change : changes_) has_changes[change.source] = true;
    for (const CapacityChange& end : ends_) {
        ended[end.source] = std::min(ended[end.source], end.time_ns);
    }
    std::erase_if(changes_, [&](const CapacityChange& change) {
        return change.time_ns >= ended[change.source];
    });
    for (std::uint32_t source = 0; source < sources; ++source) {
        if (!has_changes[source] || ended[source] == UINT64_MAX) continue;
        changes_.push_back({ended[source], 0, source});
    }
    std::ranges::stable_sort(changes_, {}, &CapacityChange::time_ns);
    return std::move(changes_);
}
namespace {

constexpr std::uint64_t max_page_bytes = std::uint64_t{1} << 30;

template <std::size_t Bytes>
std::string text_of(const char (&stored)[Bytes]) {
    return {stored, strnlen(stored, Bytes)};
}

}  // namespace

RecordingBuilder::RecordingBuilder(std::string path) : path_(std::move(path)) {
    recording_.sources.push_back({.name = "?"});
    recording_.modules.push_back({.path = "?"});
}

void RecordingBuilder::fail(const TraceChunk& chunk, const std::string& what) const {
    throw TraceError(path_, chunk.offset, what);
}

void RecordingBuilder::add(const TraceChunk& chunk) {
    clock_.add(chunk.header.cycles, chunk.header.unix_ns);
    switch (chunk.header.kind) {
        case TraceChunkKind::process:
            return add_process(chunk);
        case TraceChunkKind::names:
            return add_names(process_of(chunk), chunk);
        case TraceChunkKind::modules:
            return add_modules(process_of(chunk), chunk);
        case TraceChunkKind::entries:
            return add_entries(process_of(chunk), chunk);
        case TraceChunkKind::end:
            recording_.processes[process_of(chunk).index].ended = true;
            return;
    }
}

// A process number may occur twice: for a process recorded twice, or for a later process.
void RecordingBuilder::add_process(const TraceChunk& chunk) {
    const TraceProcess& described = chunk.records<TraceProcess>().front();
    if (!std::has_single_bit(described.page_bytes) || described.page_bytes > max_page_bytes) {
        fail(chunk, fmt::format("found a process with pages of {} B; expected a power of two up to "
                                "{} B",
                                described.page_bytes, max_page_bytes));
    }
    clock_.add(described.begun_cycles, described.begun_unix_ns);
    if (recording_.processes.empty() || described.begun_cycles < begun_cycles_) {
        begun_cycles_ = described.begun_cycles;
        recording_.begun_unix_ns = described.begun_unix_ns;
    }
    Process& process = processes_.emplace_back();
    process.index = static_cast<std::uint32_t>(recording_.processes.size());
    by_number_[chunk.header.process] = &process;
    recording_.processes.push_back({.number = chunk.header.process,
                                    .name = text_of(described.name),
                                    .page_bytes = described.page_bytes,
                                    .stack_interval = described.stack_interval,
                                    .from_start = described.from_start != 0,
                                    .begun_unix_ns = described.begun_unix_ns});
}

RecordingBuilder::Process& RecordingBuilder::process_of(const TraceChunk& chunk) {
    const auto found = by_number_.find(chunk.header.process);
    if (found == by_number_.end()) {
        fail(chunk, fmt::format("found a chunk of process {}; expected a preceding chunk that "
                                "describes this process",
                                chunk.header.process));
    }
    return *found->second;
}

void RecordingBuilder::add_names(Process& process, const TraceChunk& chunk) {
    for (const TraceName& name : chunk.records<TraceName>()) {
        if (name.kind < TraceSource::pool || name.kind > TraceSource::planned) {
            fail(chunk, fmt::format("found a name of kind {}; expected 1 to 6",
                                    static_cast<std::uint32_t>(name.kind)));
        }
        const auto [at, is_new] = process.sources.try_emplace(
            name.source, static_cast<std::uint32_t>(recording_.sources.size()));
        if (is_new) recording_.sources.emplace_back();
        recording_.sources[at->second] = {.process = process.index,
                                          .kind = name.kind,
                                          .number = name.source,
                                          .name = text_of(name.text)};
    }
}

void RecordingBuilder::add_modules(Process& process, const TraceChunk& chunk) {
    for (const TraceModule& module : chunk.records<TraceModule>()) {
        const auto [at, is_new] = process.modules.try_emplace(
            module.number, static_cast<std::uint32_t>(recording_.modules.size()));
        if (!is_new) continue;
        recording_.modules.push_back(
            {.process = process.index, .number = module.number, .path = text_of(module.path)});
    }
}

Recording RecordingBuilder::finish(std::uint64_t cut_bytes) {
    std::vector<CallRuns> rings;
    for (Process& process : processes_) {
        for (auto& [number, ring] : process.rings) {
            end_stack(ring);
            recording_.processes[process.index].dropped += ring.dropped;
            rings.push_back(std::move(ring.runs));
        }
    }
    recording_.stacks = stacks_.take();
    recording_.calls = merge(std::move(rings));
    for (Call& call : recording_.calls) {
        call.time_ns = clock_.ns_between(begun_cycles_, call.time_ns);
    }
    recording_.capacities = capacities_.take(recording_.sources.size());
    for (CapacityChange& change : recording_.capacities) {
        change.time_ns = clock_.ns_between(begun_cycles_, change.time_ns);
    }
    recording_.cut_bytes = cut_bytes;
    return std::move(recording_);
}

}  // namespace tensorpool::command::trace
