// gperftools' text format ("heap profile:"), as pprof, jeprof and google-pprof read it. Samples are
// written without scaling: readers scale them by heap_v2 and the interval.

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "common/posix.hpp"
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

// No file's image is larger, and the images of all modules of a trace fit beside each other.
constexpr std::uint64_t max_image_bytes = std::uint64_t{1} << 41;

template <class Record>
bool read(const Descriptor& file, Record& record, std::uint64_t offset) {
    if (!file || offset > INT64_MAX) return false;
    return ::pread(file.number(), &record, sizeof record, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(sizeof record);
}

bool is_ours(const Elf64_Ehdr& header) {
    constexpr int byte_order =
        std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == byte_order &&
           header.e_phentsize == sizeof(Elf64_Phdr);
}

// The path ends a line of maps, so it must contain no white space.
std::string one_line(std::string path) {
    std::ranges::replace_if(
        path, [](char character) { return static_cast<unsigned char>(character) <= ' '; }, '?');
    return path;
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

Moment moment_of(const History& history, At at) {
    if (at == At::peak) return find_peak(history);
    return {static_cast<std::uint32_t>(history.recording().calls.size())};
}

CodeSegment code_segment_of(const std::string& path) {
    const Descriptor file = open_regular_file(path);
    Elf64_Ehdr header;
    if (!read(file, header, 0) || !is_ours(header)) return {};
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (!read(file, segment, header.e_phoff + i * sizeof segment)) return {};
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
            return {segment.p_offset, segment.p_vaddr};
        }
    }
    return {};
}

LoadedCode::LoadedCode(const trace::Recording& recording) : recording_(recording) {
    for (const auto& stack : recording.stacks) {
        for (const trace::RecordedFrame frame : stack) {
            if (frame.offset >= max_image_bytes || frame.module >= recording.modules.size()) {
                continue;
            }
            Module& module = modules_[recording.modules[frame.module].path];
            module.max_offset = std::max(module.max_offset, frame.offset);
        }
    }
    std::uint64_t base = 0;
    for (auto& [path, module] : modules_) module.base = base += max_image_bytes;
}

std::uint64_t LoadedCode::address_of(trace::RecordedFrame frame) const {
    if (frame.module >= recording_.modules.size() || frame.offset >= max_image_bytes) return 0;
    const auto module = modules_.find(recording_.modules[frame.module].path);
    return module == modules_.end() ? 0 : module->second.base + frame.offset;
}

std::string LoadedCode::maps() const {
    constexpr std::uint64_t page = 4096;
    std::string text;
    for (const auto& [path, module] : modules_) {
        const CodeSegment code = code_segment_of(path);
        const std::uint64_t address = std::min(code.address, max_image_bytes) / page * page;
        const std::uint64_t end = module.base + module.max_offset / page * page + page;
        text += fmt::format("{:x}-{:x} r-xp {:08x} 00:00 0 {}\n", module.base + address,
                            std::max(end, module.base + address + page),
                            code.file_offset / page * page, one_line(path));
    }
    return text;
}

void write_heap_profile(const History& history, Moment moment, WrittenFile& file) {
    const bool has_stacks = history.recording().stacks.size() > 1;
    has_stacks ? write_by_stack(history, moment, file) : write_by_name(history, moment, file);
}

}  // namespace tensorpool::command::export_
