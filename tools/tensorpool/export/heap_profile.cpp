// gperftools' text format ("heap profile:"), as pprof, jeprof and google-pprof read it, with names
// instead of addresses. Samples are written without scaling: readers scale them by heap_v2 and the
// interval.

#include <fmt/format.h>

#include "export/formats.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::export_ {
namespace {

using profile::HeapSum;
using profile::NamedHeap;

Moment find_peak(const History& history) {
    std::uint64_t now = 0;
    std::uint64_t max = 0;
    Moment peak;
    history.walk(
        [&](std::uint32_t i) {
            const Lifetime& lifetime = history.lifetimes()[i];
            now += lifetime.bytes;
            if (now <= max) return;
            max = now;
            peak.calls = lifetime.begin == Lifetime::none ? 0 : lifetime.begin + 1;
        },
        [&](std::uint32_t i) { now -= history.lifetimes()[i].bytes; });
    return peak;
}

void add(HeapSum& sum, const Lifetime& lifetime, Moment moment) {
    if (moment.is_alive(lifetime)) {
        ++sum.blocks;
        sum.bytes += lifetime.bytes;
    }
    if (lifetime.begin == Lifetime::none || lifetime.continues) return;
    ++sum.all_blocks;
    sum.all_bytes += lifetime.bytes;
}

template <class Key, class Rank>
std::map<Key, HeapSum> add_up(const History& history, Moment moment, Rank key_of) {
    std::map<Key, HeapSum> sums;
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        if (moment.has_begun(lifetime)) add(sums[key_of(i)], lifetime, moment);
    }
    return sums;
}

/// Readers scale the samples by this interval.
std::string kind_of(const Recording& recording) {
    std::uint64_t interval = 1;
    for (const trace::RecordedProcess& process : recording.processes) {
        interval = std::max(interval, process.stack_interval);
    }
    return fmt::format("heap_v2/{}", interval);
}

NamedHeap by_stack(const History& history, Moment moment) {
    const Recording& recording = history.recording();
    auto sums = add_up<std::uint32_t>(history, moment,
                                      [&](std::size_t i) { return history.facts(i).stack; });
    sums.erase(0);  // calls without a sampled stack
    symbols::FrameNames names(recording);
    NamedHeap heap;
    for (const auto& [stack, sum] : sums) {
        std::vector<std::string> texts;
        for (const trace::RecordedFrame frame : symbols::frames_of_caller(recording, stack)) {
            texts.push_back(to_short_text(names.name(frame)));
        }
        heap.add(sum, texts);
    }
    return heap;
}

NamedHeap by_name(const History& history, Moment moment) {
    const Recording& recording = history.recording();
    using SourceAndScope = std::pair<std::uint32_t, std::uint32_t>;
    const auto sums = add_up<SourceAndScope>(history, moment, [&](std::size_t i) {
        return SourceAndScope{history.lifetimes()[i].source, history.facts(i).scope};
    });
    NamedHeap heap;
    for (const auto& [key, sum] : sums) {
        const auto [source, scope] = key;
        const std::string& outer = scope == BlockFacts::none ? std::string("[outside of scopes]")
                                                             : recording.sources[scope].name;
        heap.add(sum, {recording.sources[source].name, outer});
    }
    return heap;
}

}  // namespace

Moment moment_of(const History& history, At at) {
    if (at == At::peak) return find_peak(history);
    return {static_cast<std::uint32_t>(history.recording().calls.size())};
}

void write_heap_profile(const History& history, Moment moment, WrittenFile& file) {
    const bool has_stacks = history.recording().stacks.size() > 1;
    file.write(has_stacks ? by_stack(history, moment).text(kind_of(history.recording()))
                          : by_name(history, moment).text("heapprofile"));
}

}  // namespace tensorpool::command::export_
