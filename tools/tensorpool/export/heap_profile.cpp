// gperftools' text format ("heap profile:"), as pprof, jeprof and google-pprof read it. Samples are
// written without scaling: readers scale them by heap_v2 and the interval.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "export/formats.hpp"
#include "export/loaded_code.hpp"
#include "formats/heap_text.hpp"
#include "formats/symbols/frame_names.hpp"

namespace tensorpool::command::export_ {
namespace {

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

using SumsByStack = std::map<std::uint32_t, HeapSum>;

void write_addresses(const SumsByStack& sums, const Recording& recording, WrittenFile& file) {
    const LoadedCode code(recording);
    HeapSum all;
    for (const auto& [stack, sum] : sums) all += sum;
    file.write(fmt::format("heap profile: {} {}\n", counts(all), kind_of(recording)));
    for (const auto& [stack, sum] : sums) {
        file.write(counts(sum));
        bool is_innermost = true;
        for (const trace::RecordedFrame frame : symbols::frames_of_caller(recording, stack)) {
            // Readers subtract 1 from return addresses. The recorder has already done so.
            const std::uint64_t address = code.address_of(frame);
            if (address != 0) file.write(fmt::format(" {:#x}", address + (is_innermost ? 0 : 1)));
            is_innermost = false;
        }
        file.write("\n");
    }
    file.write("\nMAPPED_LIBRARIES:\n" + code.maps());
}

// Lines of Python have no addresses.
void write_names(const SumsByStack& sums, const Recording& recording, WrittenFile& file) {
    symbols::FrameNames names(recording);
    NamedHeap heap;
    for (const auto& [stack, sum] : sums) {
        std::vector<std::string> texts;
        for (const trace::RecordedFrame frame : symbols::frames_of_caller(recording, stack)) {
            texts.push_back(to_short_text(names.name(frame)));
        }
        heap.add(sum, texts);
    }
    file.write(heap.text(kind_of(recording)));
}

void write_by_stack(const History& history, Moment moment, WrittenFile& file) {
    const Recording& recording = history.recording();
    auto sums = add_up<std::uint32_t>(history, moment,
                                      [&](std::size_t i) { return history.facts(i).stack; });
    sums.erase(0);  // calls without a sampled stack
    const bool has_python = std::ranges::any_of(
        recording.modules, [](const auto& module) { return symbols::is_python(module.path); });
    (has_python ? write_names : write_addresses)(sums, recording, file);
}

void write_by_name(const History& history, Moment moment, WrittenFile& file) {
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
    file.write(heap.text("heapprofile"));
}

}  // namespace

void write_heap_profile(const History& history, Moment moment, WrittenFile& file) {
    const bool has_stacks = history.recording().stacks.size() > 1;
    has_stacks ? write_by_stack(history, moment, file) : write_by_name(history, moment, file);
}

}  // namespace tensorpool::command::export_
