#include "fed_trace.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "common/settings.hpp"
#include "formats/trace/recording.hpp"

namespace tensorpool::command::trace::testing {
namespace {

void demand(bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
}

void repair(std::span<std::byte> bytes) {
    TraceHeader begin{};
    if (bytes.size() < sizeof begin) return;
    std::memcpy(begin.magic, trace_magic, sizeof trace_magic);
    begin.version = trace_version;
    begin.header_bytes = sizeof begin;
    std::memcpy(bytes.data(), &begin, sizeof begin);
    for (std::size_t at = sizeof begin; bytes.size() - at >= sizeof(TraceChunkHeader);) {
        TraceChunkHeader header{};
        std::memcpy(&header, bytes.data() + at, sizeof header);
        header.magic = trace_chunk_magic;
        if (header.compression == TraceCompression::none) header.bytes = header.stored_bytes;
        std::uint64_t words[7];
        std::memcpy(words, &header, sizeof words);
        header.check = trace_check(words);
        std::memcpy(bytes.data() + at, &header, sizeof header);
        at += sizeof header;
        if (header.stored_bytes > bytes.size() - at) return;
        at += header.stored_bytes;
    }
}

void check_tables(const Recording& recording) {
    demand(!recording.sources.empty() && !recording.modules.empty(), "no first source or module");
    demand(!recording.stacks.empty() && recording.stacks[0].empty(),
           "the first stack is not empty");
    for (const RecordedProcess& process : recording.processes) {
        demand(process.page_bytes != 0, "pages of 0 bytes");
    }
    for (const RecordedThread& thread : recording.threads) {
        demand(thread.process < recording.processes.size(), "a thread without a process");
    }
    for (const auto& stack : recording.stacks) {
        for (const RecordedFrame& frame : stack) {
            demand(frame.module < recording.modules.size(), "a frame without a module");
        }
    }
}

void check_calls(const Recording& recording) {
    std::uint64_t last_ns = 0;
    for (const Call& call : recording.calls) {
        demand(call.time_ns >= last_ns, "time goes back");
        last_ns = call.time_ns;
        demand(call.stream < recording.streams.size(), "a call without a stream");
        demand(call.thread < recording.threads.size(), "a call without a thread");
        demand(call.source < recording.sources.size(), "a call without a source");
        demand(call.stack < recording.stacks.size(), "a call without a stack");
        demand(call.alignment_log2 < 64, "an alignment beyond the address space");
        demand(call.action > TraceAction::none && call.action <= TraceAction::slab_end &&
                   call.action != TraceAction::thread && call.action != TraceAction::frames &&
                   call.action != TraceAction::capacity && call.action != TraceAction::stream,
               "an action that is not a call");
    }
}

void check_lifetimes(const Recording& recording) {
    std::uint32_t last = 0;
    bool has_begun = false;
    for (const Lifetime& lifetime : lifetimes_of(recording)) {
        demand(lifetime.begin != Lifetime::none || lifetime.end != Lifetime::none,
               "a lifetime without a call");
        demand(lifetime.end == Lifetime::none || lifetime.end < recording.calls.size(),
               "an end without a call");
        demand(lifetime.bytes <= UINT64_MAX - lifetime.address, "a block beyond the address space");
        demand(lifetime.stream < recording.streams.size(), "a block without a stream");
        demand(lifetime.deferred == Lifetime::none || (lifetime.begin < lifetime.deferred &&
                                                       lifetime.deferred < recording.calls.size()),
               "a deferral before the beginning");
        if (lifetime.begin == Lifetime::none) {
            demand(!has_begun, "an earlier block after a later one");
            continue;
        }
        demand(lifetime.begin < recording.calls.size(), "a beginning without a call");
        demand(!has_begun || lifetime.begin > last, "lifetimes out of order");
        demand(lifetime.end == Lifetime::none || lifetime.end > lifetime.begin,
               "an end before the beginning");
        has_begun = true;
        last = lifetime.begin;
    }
}

}  // namespace

void feed_trace(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    std::vector<std::byte> fed(bytes.begin() + 1, bytes.end());
    if (std::to_integer<unsigned>(bytes[0]) % 2 != 0) repair(fed);
    try {
        const Recording recording = read_recording(fed, "fed");
        check_tables(recording);
        check_calls(recording);
        check_lifetimes(recording);
    } catch (const CommandError&) {  // a valid outcome
    }
}

}  // namespace tensorpool::command::trace::testing
